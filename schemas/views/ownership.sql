-- Owners of partitions over time: one row per partition and member, from the record that assigned the partition to the record
-- that took it away. since is null if the histories start later, until is null while the member owns the partition.
SELECT o.group_id, o.topic, o.topic_id, o.partition, o.member_id, o.group_instance_id, o.client_id, o.client_host,
       NULLIF(o.generation, -1) AS generation,
       CASE WHEN o.event = 'gained' THEN o.record_timestamp END AS since,
       CASE o.event WHEN 'gained' THEN o.next_timestamp WHEN 'lost' THEN o.record_timestamp END AS until
FROM (
  SELECT e.group_id, COALESCE(e.topic_name, t.topic) AS topic, e.topic_id, e.partition, e.member_id, e.group_instance_id,
         e.client_id, e.client_host, e.generation, e.event, e.record_timestamp,
         -- `before` is in descending order, so that lead() is the event before
         lead(e.event) OVER before AS previous,
         lead(CASE WHEN e.event = 'lost' THEN e.record_timestamp END) OVER after AS next_timestamp
  FROM (
    SELECT group_id, CASE WHEN topic_id IS NULL THEN topic END AS topic_name, topic_id, member_id, group_instance_id, client_id,
           client_host, generation, 'gained' AS event, batch_id, log_offset, record_timestamp, unnest(gained) AS partition
    FROM ownership_history
    UNION ALL
    SELECT group_id, CASE WHEN topic_id IS NULL THEN topic END AS topic_name, topic_id, member_id, group_instance_id, client_id,
           client_host, generation, 'lost' AS event, batch_id, log_offset, record_timestamp, unnest(lost) AS partition
    FROM ownership_history
    UNION ALL
    -- assigned now: counts where the histories do not have the start
    SELECT group_id, CASE WHEN part['topic_id'] IS NULL THEN part['topic'] END AS topic_name, part['topic_id'] AS topic_id,
           member_id, group_instance_id, client_id, client_host, CAST(NULL AS INT) AS generation, 'assigned' AS event,
           9223372036854775807 AS batch_id, 0 AS log_offset, record_timestamp, unnest(part['partitions']) AS partition
    FROM (
      SELECT group_id, member_id, group_instance_id, client_id, client_host, record_timestamp, unnest(assigned) AS part
      FROM members WHERE assigned IS NOT NULL
    ) per_topic
  ) e
  LEFT JOIN topic_ids t ON t.topic_id = e.topic_id
  WINDOW before AS (PARTITION BY e.group_id, e.member_id, e.topic_name, e.topic_id, e.partition
                    ORDER BY e.batch_id DESC, e.log_offset DESC),
         after AS (PARTITION BY e.group_id, e.member_id, e.topic_name, e.topic_id, e.partition ORDER BY e.batch_id, e.log_offset)
) o
WHERE o.event = 'gained' OR o.previous IS NULL
