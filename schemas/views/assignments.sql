-- Who owns what: one row per group, member, topic and partition. A topic that only its id names gets its name from topic_ids;
-- the id of one that nothing names stays, with a null topic.
SELECT a.group_id, a.member_id, a.group_instance_id, a.client_id, COALESCE(a.topic, t.topic) AS topic, a.topic_id, a.partition
FROM (
  SELECT group_id, member_id, group_instance_id, client_id, part['topic'] AS topic, part['topic_id'] AS topic_id,
         unnest(part['partitions']) AS partition
  FROM (SELECT group_id, member_id, group_instance_id, client_id, unnest(assigned) AS part FROM members) per_topic
) a
LEFT JOIN topic_ids t ON t.topic_id = a.topic_id
