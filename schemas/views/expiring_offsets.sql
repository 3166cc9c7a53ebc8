-- When the sweep of the era would remove each committed offset, by the state that is in the tables now; null: never.
-- Group state decides from 2.1 on (KIP-211), subscriptions from 2.4 on (KIP-496), a pending transactional commit protects in era 4.
-- A commit without a timestamp counts as one at -1 ms, which is what its record says.
SELECT e.group_id, e.topic, e.partition, e.committed_offset, e.commit_timestamp, e.expire_timestamp, e.group_type, e.state,
       CASE
         WHEN e.era IN ('0.9', '0.10', '1') THEN e.expire_timestamp + INTERVAL '0.001' SECOND
         WHEN e.era = '4' AND e.is_pending THEN NULL
         WHEN e.group_type = 'share' THEN NULL
         WHEN e.group_type IN ('consumer', 'streams') AND e.is_subscribed THEN NULL
         WHEN e.group_type IN ('consumer', 'streams', 'simple') THEN COALESCE(e.expire_timestamp, e.committed_at + e.retention)
         WHEN e.state = 'Empty' THEN COALESCE(e.expire_timestamp, COALESCE(e.state_timestamp, e.committed_at) + e.retention)
         WHEN e.era IN ('3', '4') AND e.protocol_type = 'consumer' AND e.state = 'Stable' AND NOT e.is_subscribed
           THEN COALESCE(e.expire_timestamp, e.committed_at + e.retention)
         ELSE NULL
       END AS expires_at
FROM (
  SELECT o.group_id, o.topic, o.partition, o.committed_offset, o.commit_timestamp, o.expire_timestamp, g.group_type, g.state,
         COALESCE(o.commit_timestamp, to_timestamp_micros(-1000)) AS committed_at,
         g.protocol_type, g.state_timestamp, array_contains(g.subscribed_topics, o.topic) AS is_subscribed,
         p.group_id IS NOT NULL AS is_pending, {batch.era} AS era,
         CAST(concat(CAST({batch.retention_ms} AS STRING), ' milliseconds') AS INTERVAL) AS retention
  FROM committed_offsets o
  LEFT JOIN groups g ON g.group_id = o.group_id
  LEFT JOIN (SELECT DISTINCT group_id, topic, partition FROM pending_offsets) p
    ON p.group_id = o.group_id AND p.topic = o.topic AND p.partition = o.partition
) e
