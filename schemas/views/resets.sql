-- Resets: commits to a lower offset, and every move of an offset by an administrator. Of a batch with a rewind, the lowest commit
-- that went back and the last one count; where it went back after others of the batch only, the offset before it is unknown. The
-- lowest has the time and the client of the last one, and an unknown client if a member came or went in
-- the batch, as has each commit of such a poll. Kafka's tools commit to an empty group, without leader epoch and metadata, outside of a transaction.
SELECT j.group_id, j.topic, j.partition, j.reset_at,
       j.known_from AS from_offset, j.to_offset, j.of_several AND j.to_offset < j.from_offset AS from_is_least,
       abs(j.to_offset - j.known_from) AS size,
       CASE WHEN j.to_offset < j.from_offset THEN 'back' ELSE 'forward' END AS direction, j.reset_by, j.log_partition,
       j.log_offset, j.batch_id
FROM (
  SELECT e.*, CASE WHEN e.of_several AND e.from_offset = e.to_offset + 1 THEN NULL ELSE e.from_offset END AS known_from,
         CASE
           WHEN (e.is_lowest OR e.log_partition = -1) AND e.least_members = 0 AND e.most_members > 0 THEN 'unknown'
           WHEN e.members_then > 0 THEN 'member'
           WHEN e.state_then = 'Empty' AND e.is_plain THEN 'admin'
           ELSE 'unknown'
         END AS reset_by
  FROM (
    SELECT u.*,
           last_value(u.state) IGNORE NULLS OVER until_then AS state_then,
           last_value(u.member_count) IGNORE NULLS OVER until_then AS members_then,
           min(least(u.member_count, u.previous_members)) OVER of_batch AS least_members,
           max(greatest(u.member_count, u.previous_members)) OVER of_batch AS most_members
    FROM (
      SELECT group_id, topic, partition, COALESCE(commit_timestamp, record_timestamp) AS reset_at,
             CASE WHEN change = 'rewind' AND min_offset <= committed_offset
                  THEN greatest(COALESCE(previous_offset, min_offset + 1), min_offset + 1)
                  ELSE previous_offset END AS from_offset,
             CASE WHEN change = 'rewind' AND min_offset < committed_offset THEN min_offset ELSE committed_offset END AS to_offset,
             commits > 1 AS of_several, change = 'rewind' AND min_offset < committed_offset AS is_lowest,
             leader_epoch IS NULL AND COALESCE(metadata, '') = '' AND producer_id IS NULL AS is_plain,
             CAST(NULL AS STRING) AS state, CAST(NULL AS INT) AS member_count, CAST(NULL AS INT) AS previous_members,
             log_partition, log_offset, batch_id
      FROM offset_history
      WHERE change IN ('commit', 'rewind')
      UNION ALL
      SELECT group_id, topic, partition, COALESCE(commit_timestamp, record_timestamp) AS reset_at, min_offset AS from_offset,
             committed_offset AS to_offset, FALSE AS of_several, FALSE AS is_lowest,
             leader_epoch IS NULL AND COALESCE(metadata, '') = '' AND producer_id IS NULL AS is_plain,
             CAST(NULL AS STRING) AS state, CAST(NULL AS INT) AS member_count, CAST(NULL AS INT) AS previous_members,
             log_partition, log_offset, batch_id
      FROM offset_history
      WHERE change = 'rewind' AND min_offset < committed_offset
      UNION ALL
      SELECT group_id, CAST(NULL AS STRING), CAST(NULL AS INT), record_timestamp, CAST(NULL AS BIGINT), CAST(NULL AS BIGINT),
             FALSE AS of_several, FALSE AS is_lowest, FALSE AS is_plain, state, member_count,
             COALESCE(previous_member_count, 0) AS previous_members, log_partition, log_offset, batch_id
      FROM membership_history
      UNION ALL
      -- the state of now counts where the history does not reach back
      SELECT group_id, CAST(NULL AS STRING), CAST(NULL AS INT), record_timestamp, CAST(NULL AS BIGINT), CAST(NULL AS BIGINT),
             FALSE AS of_several, FALSE AS is_lowest, FALSE AS is_plain, state, member_count,
             member_count AS previous_members, log_partition, log_offset, batch_id
      FROM groups
      WHERE group_type <> 'simple'
    ) u
    WHERE u.state IS NOT NULL OR u.to_offset < u.from_offset OR (u.is_plain AND u.to_offset > u.from_offset)
    WINDOW until_then AS (PARTITION BY u.group_id ORDER BY u.batch_id, u.log_offset
                          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
           of_batch AS (PARTITION BY u.group_id, u.batch_id)
  ) e
  WHERE e.topic IS NOT NULL
) j
WHERE j.to_offset < j.from_offset OR j.reset_by = 'admin'
