-- Hanging transactions at the end of the batch that is read, and what each of them blocks: a row per partition, and a row per
-- offset of a group that waits for the transaction. They hang for five minutes or longer: above their timeout, since the decision
-- without all markers, or as offsets of a producer without an open transaction (only if transactions are read).
SELECT h.transactional_id, h.producer_id, h.producer_epoch, h.state, h.reason, h.hanging_since,
       round(date_part('epoch', {batch.finished_at}) - date_part('epoch', h.hanging_since)) AS hanging_seconds,
       h.group_id, h.topic, h.partition, h.pending_offset, h.blocked_since
FROM (
  SELECT t.transactional_id, t.producer_id, t.producer_epoch, t.state, t.reason, t.hanging_since, b.group_id, b.topic,
         b.partition, b.pending_offset, b.blocked_since
  FROM (
    SELECT *,
           CASE WHEN state = 'Ongoing' THEN 'timeout' ELSE 'markers' END AS reason,
           CASE
             WHEN state <> 'Ongoing' THEN last_update_timestamp
             WHEN timeout_ms < 2147483647
               THEN start_timestamp + CAST(concat(CAST(timeout_ms AS STRING), ' milliseconds') AS INTERVAL)
           END AS hanging_since
    FROM transactions
    WHERE state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort')
  ) t
  LEFT JOIN (
    SELECT q.producer_id, CAST(NULL AS STRING) AS group_id, q.part['topic'] AS topic, q.partition,
           CAST(NULL AS BIGINT) AS pending_offset, q.start_timestamp AS blocked_since
    FROM (
      SELECT p.producer_id, p.start_timestamp, p.part, unnest(p.part['partitions']) AS partition
      FROM (SELECT producer_id, start_timestamp, unnest(partitions) AS part FROM transactions) p
    ) q
    UNION ALL
    SELECT producer_id, group_id, topic, partition, committed_offset AS pending_offset, record_timestamp AS blocked_since
    FROM pending_offsets
  ) b ON b.producer_id = t.producer_id
  UNION ALL
  SELECT e.transactional_id, p.producer_id, e.producer_epoch, e.state, 'no_transaction' AS reason,
         p.record_timestamp AS hanging_since, p.group_id, p.topic, p.partition, p.committed_offset AS pending_offset,
         p.record_timestamp AS blocked_since
  FROM pending_offsets p
  LEFT JOIN transactions e ON e.producer_id = p.producer_id
  WHERE COALESCE(e.state NOT IN ('Ongoing', 'PrepareCommit', 'PrepareAbort'), TRUE) AND {batch.transaction_offsets} IS NOT NULL
) h
WHERE date_part('epoch', {batch.finished_at}) - date_part('epoch', h.hanging_since) >= 300
