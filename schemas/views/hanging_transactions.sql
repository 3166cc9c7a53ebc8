-- Hanging transactions at the end of the batch that is read, and what each of them blocks: a row per partition, and for offsets a
-- row per offset of a group that waits for the transaction. A transaction hangs if it is open for longer than the setting
-- status.transaction_ms of the job (15 minutes), as in the rule hanging_transaction: it is Ongoing, or decided without all markers,
-- or no open transaction has the offsets (only if transactions are read).
SELECT h.transactional_id, h.producer_id, h.producer_epoch, h.state, h.reason,
       h.open_since + CAST(concat(CAST(least({batch.transaction_ms}, 9223372036854) AS STRING), ' milliseconds') AS INTERVAL) AS hanging_since,
       round(date_part('epoch', {batch.finished_at}) - date_part('epoch', h.open_since) - {batch.transaction_ms} / 1000.0) AS hanging_seconds,
       h.group_id, h.topic, h.partition, h.pending_offset, h.blocked_since, h.open_since
FROM (
  SELECT t.transactional_id, t.producer_id, t.producer_epoch, t.state, t.reason, t.start_timestamp AS open_since, p.group_id,
         COALESCE(p.topic, b.topic) AS topic, COALESCE(p.partition, b.partition) AS partition,
         p.committed_offset AS pending_offset, COALESCE(p.record_timestamp, t.start_timestamp) AS blocked_since
  FROM (
    SELECT transactional_id, producer_id, producer_epoch, state, start_timestamp,
           CASE WHEN state = 'Ongoing' THEN 'timeout' ELSE 'markers' END AS reason
    FROM transactions
    WHERE state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort')
  ) t
  LEFT JOIN (
    SELECT q.transactional_id, q.part['topic'] AS topic, unnest(q.part['partitions']) AS partition
    FROM (SELECT transactional_id, unnest(partitions) AS part FROM transactions) q
  ) b ON b.transactional_id = t.transactional_id
  LEFT JOIN pending_offsets p
    ON p.producer_id = t.producer_id AND b.topic = '__consumer_offsets' AND p.log_partition = b.partition
  UNION ALL
  SELECT e.transactional_id, p.producer_id, e.producer_epoch, e.state, 'no_transaction' AS reason,
         p.record_timestamp AS open_since, p.group_id, p.topic, p.partition, p.committed_offset AS pending_offset,
         p.record_timestamp AS blocked_since
  FROM pending_offsets p
  LEFT JOIN transactions e ON e.producer_id = p.producer_id
  LEFT JOIN (
    SELECT q.producer_id, q.part['topic'] AS topic, unnest(q.part['partitions']) AS partition
    FROM (
      SELECT producer_id, unnest(partitions) AS part FROM transactions
      WHERE state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort')
    ) q
  ) b ON b.producer_id = p.producer_id AND b.topic = '__consumer_offsets' AND b.partition = p.log_partition
  WHERE b.producer_id IS NULL AND {batch.transaction_offsets} IS NOT NULL
) h
WHERE round(1000 * (date_part('epoch', {batch.finished_at}) - date_part('epoch', h.open_since))) > {batch.transaction_ms}
