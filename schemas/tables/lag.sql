CREATE TABLE lag (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  topic STRING NOT NULL COMMENT 'Topic of the commit or the assignment',
  partition INT NOT NULL COMMENT 'Partition of the topic',
  consumer_id STRING COMMENT 'Member id of the owner; null without owner',
  member_host STRING COMMENT 'Host of the owner; null without owner',
  client_id STRING COMMENT 'Client id of the owner; null without owner',
  group_offset BIGINT COMMENT 'Committed offset; null without commit',
  latest_offset BIGINT COMMENT 'High watermark; null if unknown',
  earliest_offset BIGINT COMMENT 'First offset in the log; null if unknown',
  lag BIGINT COMMENT 'High watermark minus committed offset; null if unknown',
  data_lag BIGINT COMMENT 'Unread records without markers and aborted ones; null if unknown',
  lag_seconds DOUBLE COMMENT 'Age of the next record to read; null if unknown',
  lag_seconds_low DOUBLE COMMENT 'Lower bound of the age; null if unknown',
  lag_seconds_high DOUBLE COMMENT 'Upper bound of the age; null if unknown',
  lag_method STRING NOT NULL COMMENT 'Origin of the age: exact, interpolated, lower_bound or none',
  lag_reason STRING COMMENT 'Reason for unknown or limited values; null otherwise',
  messages_lost BIGINT COMMENT 'Offsets deleted before the group read them; null if unknown',
  blocked_by_transaction BOOLEAN COMMENT 'Open transaction before the next record; null if unknown',
  lag_slope_per_second DOUBLE COMMENT 'Median change of lag per second over slope_window_seconds; null if unknown',
  stuck_seconds DOUBLE COMMENT 'Time without progress despite unread records; null without them',
  drain_seconds DOUBLE COMMENT 'Time until lag 0 at the present slope; null unless falling',
  retention_margin_seconds DOUBLE COMMENT 'Time until retention deletes the next record; null if unknown',
  sampled_at TIMESTAMP COMMENT 'Time of the sample; null without one',
  commits_read_until TIMESTAMP NOT NULL COMMENT 'Time before which all commits are counted',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)',
  slope_window_seconds DOUBLE COMMENT 'Window of the slope and of both rates; null if unknown',
  produce_rate DOUBLE COMMENT 'Records written per second; null if unknown',
  consume_rate DOUBLE COMMENT 'Records read per second, from commits; null if unknown',
  falls_behind_since TIMESTAMP COMMENT 'Start of the sustained growth of lag; null unless it grows',
  blocked_since TIMESTAMP COMMENT 'Start of the open transaction; null unless it blocked in two samples',
  blocked_since_method STRING COMMENT 'Origin of the start: transaction, record or sample',
  blocked_by_producer_id BIGINT COMMENT 'Producer id of the open transaction; null if unknown',
  blocked_by_transactional_id STRING COMMENT 'Transactional id of the open transaction; null if unknown',
  committed_at TIMESTAMP COMMENT 'Time of the last commit; null without commit, or unknown',
  unconsumed STRING COMMENT 'Reason why no member can read it (not_subscribed, unknown_partition); null otherwise',
  falls_behind_since_is_latest BOOLEAN COMMENT 'Growth that may have begun earlier; null unless lag grows'
)
USING DELTA
COMMENT 'Lag of groups by partition at the last sample'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '3'
);
