-- Clients and the topics that they consume: one row per client, group and topic, while a member of the client owns a partition of
-- the topic. The number of its partitions at each record follows from the number of now and the changes since then.
SELECT c.client_id, c.client_host, c.group_id, COALESCE(c.topic, t.topic) AS topic, c.topic_id,
       CASE WHEN c.turn = 'start' THEN c.record_timestamp END AS since,
       CASE c.turn WHEN 'start' THEN c.next_timestamp WHEN 'end' THEN c.record_timestamp END AS until
FROM (
  SELECT b.*, lead(b.turn) OVER before AS previous,
         lead(CASE WHEN b.turn = 'end' THEN b.record_timestamp END) OVER after AS next_timestamp
  FROM (
    SELECT a.client_id, a.client_host, a.group_id, a.topic_key, a.topic, a.topic_id, a.batch_id, a.log_offset,
           a.record_timestamp,
           CASE
             WHEN a.is_now = 1 THEN CASE WHEN a.owned > 0 THEN 'now' END
             WHEN a.owned > 0 AND a.owned = a.change THEN 'start'
             WHEN a.owned = 0 AND a.change < 0 THEN 'end'
           END AS turn
    FROM (
      SELECT s.*, sum(s.owned_now) OVER whole - sum(s.change) OVER whole + sum(s.change) OVER until_then AS owned
      FROM (
        SELECT client_id, client_host, group_id, COALESCE(topic_id, topic) AS topic_key,
               CASE WHEN topic_id IS NULL THEN topic END AS topic, topic_id, batch_id, log_offset, record_timestamp, 0 AS is_now,
               0 AS owned_now, sum(CAST(cardinality(gained) AS BIGINT) - CAST(cardinality(lost) AS BIGINT)) AS change
        FROM ownership_history
        GROUP BY client_id, client_host, group_id, topic, topic_id, batch_id, log_offset, record_timestamp
        UNION ALL
        SELECT client_id, client_host, group_id, COALESCE(part['topic_id'], part['topic']) AS topic_key,
               CASE WHEN part['topic_id'] IS NULL THEN part['topic'] END AS topic, part['topic_id'] AS topic_id,
               9223372036854775807 AS batch_id, 0 AS log_offset, max(record_timestamp) AS record_timestamp, 1 AS is_now,
               sum(CAST(cardinality(part['partitions']) AS BIGINT)) AS owned_now, 0 AS change
        FROM (SELECT client_id, client_host, group_id, record_timestamp, unnest(assigned) AS part FROM members
              WHERE assigned IS NOT NULL) per_topic
        GROUP BY client_id, client_host, group_id, part['topic'], part['topic_id']
      ) s
      WINDOW whole AS (PARTITION BY s.client_id, s.client_host, s.group_id, s.topic_key),
             until_then AS (PARTITION BY s.client_id, s.client_host, s.group_id, s.topic_key
                            ORDER BY s.batch_id, s.log_offset
                            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    ) a
  ) b
  WHERE b.turn IS NOT NULL
  WINDOW before AS (PARTITION BY b.client_id, b.client_host, b.group_id, b.topic_key
                    ORDER BY b.batch_id DESC, b.log_offset DESC),
         after AS (PARTITION BY b.client_id, b.client_host, b.group_id, b.topic_key ORDER BY b.batch_id, b.log_offset)
) c
LEFT JOIN topic_ids t ON t.topic_id = c.topic_id
WHERE c.turn = 'start' OR c.previous IS NULL
