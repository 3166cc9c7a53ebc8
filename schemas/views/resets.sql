-- Resets: commits to a lower offset, and every move of an offset by an administrator. Of a batch with a rewind, the lowest commit
-- and the last one count. Kafka's tools commit to an empty group, without leader epoch and metadata, outside of a transaction.
SELECT j.group_id, j.topic, j.partition, j.reset_at, j.from_offset, j.to_offset, abs(j.to_offset - j.from_offset) AS size,
       CASE WHEN j.to_offset < j.from_offset THEN 'back' ELSE 'forward' END AS direction, j.reset_by, j.log_partition,
       j.log_offset, j.batch_id
FROM (
  SELECT e.*,
         CASE
           WHEN e.members_then > 0 THEN 'member'
           WHEN e.state_then = 'Empty' AND e.is_plain THEN 'admin'
           ELSE 'unknown'
         END AS reset_by
  FROM (
    SELECT u.*,
           last_value(u.state) IGNORE NULLS OVER until_then AS state_then,
           last_value(u.member_count) IGNORE NULLS OVER until_then AS members_then
    FROM (
      SELECT group_id, topic, partition, COALESCE(commit_timestamp, record_timestamp) AS reset_at,
             previous_offset AS from_offset,
             CASE WHEN change = 'rewind' AND min_offset < committed_offset THEN min_offset ELSE committed_offset END AS to_offset,
             leader_epoch IS NULL AND COALESCE(metadata, '') = '' AND producer_id IS NULL AS is_plain,
             CAST(NULL AS STRING) AS state, CAST(NULL AS INT) AS member_count, log_partition, log_offset, batch_id
      FROM offset_history
      WHERE change IN ('commit', 'rewind')
      UNION ALL
      SELECT group_id, topic, partition, COALESCE(commit_timestamp, record_timestamp) AS reset_at, min_offset AS from_offset,
             committed_offset AS to_offset,
             leader_epoch IS NULL AND COALESCE(metadata, '') = '' AND producer_id IS NULL AS is_plain,
             CAST(NULL AS STRING) AS state, CAST(NULL AS INT) AS member_count, log_partition, log_offset, batch_id
      FROM offset_history
      WHERE change = 'rewind' AND min_offset < committed_offset
      UNION ALL
      SELECT group_id, CAST(NULL AS STRING), CAST(NULL AS INT), record_timestamp, CAST(NULL AS BIGINT), CAST(NULL AS BIGINT),
             FALSE, state, member_count, log_partition, log_offset, batch_id
      FROM membership_history
      UNION ALL
      -- the state of now counts where the history does not reach back
      SELECT group_id, CAST(NULL AS STRING), CAST(NULL AS INT), record_timestamp, CAST(NULL AS BIGINT), CAST(NULL AS BIGINT),
             FALSE, state, member_count, log_partition, log_offset, batch_id
      FROM groups
      WHERE group_type <> 'simple'
    ) u
    WHERE u.state IS NOT NULL OR u.to_offset < u.from_offset OR (u.is_plain AND u.to_offset > u.from_offset)
    WINDOW until_then AS (PARTITION BY u.group_id ORDER BY u.log_offset, u.batch_id
                          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
  ) e
  WHERE e.topic IS NOT NULL
) j
WHERE j.to_offset < j.from_offset OR j.reset_by = 'admin'
