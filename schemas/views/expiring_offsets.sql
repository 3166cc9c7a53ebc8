-- Time at which the sweep of the era will remove each committed offset, by the current state in the tables; null for never. Times
-- in the year 9999 or later and retentions of more than 292 years are never. The rules depend on the group state since 2.1
-- (KIP-211) and on subscriptions since 2.4 (KIP-496); in era 4 a pending transactional commit protects the offset. A commit
-- without a timestamp has timestamp -1 ms, as in its record; that of a commit that was polled (log partition -1) is unknown.
SELECT d.group_id, d.topic, d.partition, d.committed_offset, d.commit_timestamp, d.expire_timestamp, d.group_type, d.state,
       CASE
         WHEN d.due < to_timestamp_micros(253370764800000000)
           AND (d.expire_timestamp IS NOT NULL OR {batch.retention_ms} <= 9223372036854) THEN d.due
       END AS expires_at
FROM (
  SELECT e.group_id, e.topic, e.partition, e.committed_offset, e.commit_timestamp, e.expire_timestamp, e.group_type, e.state,
         CASE
           WHEN e.era IN ('0.9', '0.10', '1') THEN e.expire_timestamp + INTERVAL '0.001' SECOND
           WHEN e.era = '4' AND e.is_pending THEN NULL
           WHEN e.group_type = 'share' THEN NULL
           WHEN e.group_type IN ('consumer', 'streams') AND e.is_subscribed THEN NULL
           WHEN e.group_type IN ('consumer', 'streams', 'simple') THEN COALESCE(e.expire_timestamp, e.committed_at + e.retention)
           WHEN e.state = 'Empty' THEN COALESCE(e.expire_timestamp, COALESCE(e.state_timestamp, e.committed_at) + e.retention)
           WHEN e.era IN ('3', '4', 'redpanda') AND e.protocol_type = 'consumer' AND e.state = 'Stable' AND NOT e.is_subscribed
             THEN COALESCE(e.expire_timestamp, e.committed_at + e.retention)
           ELSE NULL
         END AS due
  FROM (
    SELECT o.group_id, o.topic, o.partition, o.committed_offset, o.commit_timestamp, o.expire_timestamp, g.group_type, g.state,
           CASE WHEN o.log_partition >= 0 THEN COALESCE(o.commit_timestamp, to_timestamp_micros(-1000)) END AS committed_at,
           g.protocol_type, g.state_timestamp, array_contains(g.subscribed_topics, o.topic) AS is_subscribed,
           p.group_id IS NOT NULL AS is_pending, {batch.era} AS era,
           CAST(concat(CAST(least({batch.retention_ms}, 9223372036854) AS STRING), ' milliseconds') AS INTERVAL) AS retention
    FROM committed_offsets o
    LEFT JOIN groups g ON g.group_id = o.group_id
    LEFT JOIN (SELECT DISTINCT group_id, topic, partition FROM pending_offsets) p
      ON p.group_id = o.group_id AND p.topic = o.topic AND p.partition = o.partition
  ) e
) d
