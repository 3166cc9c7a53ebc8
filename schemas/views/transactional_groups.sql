-- Groups whose offsets are committed in transactions, with the transactional ids that commit them. The id is null if no id has
-- the producer id any more, or if transactions are not read.
SELECT c.group_id, t.transactional_id, c.producer_id, t.producer_epoch, t.state, t.timeout_ms,
       CASE WHEN t.state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort') THEN t.start_timestamp END AS open_since,
       c.offsets, c.pending_offsets, c.last_commit_at
FROM (
  SELECT u.group_id, u.producer_id, sum(u.committed) AS offsets, sum(u.pending) AS pending_offsets,
         max(u.committed_at) AS last_commit_at
  FROM (
    -- a sum has no column comment: DataFusion rejects an aggregation over a union of columns whose comments differ
    SELECT group_id, 0 + producer_id AS producer_id, 1 AS committed, 0 AS pending, COALESCE(commit_timestamp, record_timestamp) AS committed_at
    FROM offsets
    WHERE producer_id IS NOT NULL
    UNION ALL
    SELECT group_id, 0 + producer_id AS producer_id, 0 AS committed, 1 AS pending, COALESCE(commit_timestamp, record_timestamp) AS committed_at
    FROM pending_offsets
  ) u
  GROUP BY u.group_id, u.producer_id
) c
LEFT JOIN transactions t ON t.producer_id = c.producer_id
