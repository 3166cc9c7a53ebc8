-- Assigned partitions: one row per group, member, topic and partition. The names of topics assigned by id come from topic_ids;
-- topic is null for an unknown id.
SELECT a.group_id, a.member_id, a.group_instance_id, a.client_id, COALESCE(a.topic, t.topic) AS topic, a.topic_id, a.partition
FROM (
  SELECT group_id, member_id, group_instance_id, client_id, part['topic'] AS topic, part['topic_id'] AS topic_id,
         unnest(part['partitions']) AS partition
  FROM (SELECT group_id, member_id, group_instance_id, client_id, unnest(assigned) AS part FROM members WHERE assigned IS NOT NULL) per_topic
) a
LEFT JOIN topic_ids t ON t.topic_id = a.topic_id
