-- Lag of each topic over all groups; `partitions` counts a partition once per group.
-- Sums and maxima are over the partitions with a known value, and null without one; a lag below 0 (commit beyond the end)
-- counts as 0. The bounds of the greatest age are those of its partition. sampled_at is the oldest sample.
SELECT l.topic, count(DISTINCT l.group_id) AS groups,
       count(*) AS partitions, count(*) - count(l.lag) AS unknown_partitions,
       sum(l.floored_lag) AS lag, max(l.floored_lag) AS max_lag,
       max(CASE WHEN l.lag_rank = 1 THEN l.group_id END) AS max_lag_group_id,
       max(CASE WHEN l.lag_rank = 1 THEN l.partition END) AS max_lag_partition,
       max(l.lag_seconds) AS max_lag_seconds,
       max(CASE WHEN l.age_rank = 1 THEN l.lag_seconds_low END) AS max_lag_seconds_low,
       max(CASE WHEN l.age_rank = 1 THEN l.lag_seconds_high END) AS max_lag_seconds_high,
       max(CASE WHEN l.age_rank = 1 THEN l.group_id END) AS max_lag_seconds_group_id,
       max(CASE WHEN l.age_rank = 1 THEN l.partition END) AS max_lag_seconds_partition,
       count(*) - count(l.lag_seconds) AS unknown_age_partitions,
       sum(l.messages_lost) AS messages_lost, sum(CASE WHEN l.blocked_by_transaction THEN 1 ELSE 0 END) AS blocked_partitions,
       min(l.sampled_at) AS sampled_at, min(l.commits_read_until) AS commits_read_until
FROM (
  SELECT group_id, topic, partition, lag, lag_seconds, lag_seconds_low, lag_seconds_high, messages_lost, blocked_by_transaction,
         sampled_at, commits_read_until, CASE WHEN lag < 0 THEN 0 ELSE lag END AS floored_lag,
         CASE WHEN lag IS NULL THEN 0
              ELSE row_number() OVER (PARTITION BY topic ORDER BY lag DESC NULLS LAST, group_id, partition) END AS lag_rank,
         CASE WHEN lag_seconds IS NULL THEN 0
              ELSE row_number() OVER (PARTITION BY topic ORDER BY lag_seconds DESC NULLS LAST, group_id, partition) END AS age_rank
  FROM lag
) l
GROUP BY l.topic
