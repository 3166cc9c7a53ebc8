CREATE TABLE lag_history (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  topic STRING NOT NULL COMMENT 'Topic of the commits or assignments',
  sampled_at TIMESTAMP NOT NULL COMMENT 'Time of the newest response of the sample',
  partitions INT NOT NULL COMMENT 'Number of partitions',
  unknown_partitions INT NOT NULL COMMENT 'Number of partitions with unknown lag',
  lag BIGINT COMMENT 'Sum of the known lags; null if none is known',
  max_lag BIGINT COMMENT 'Greatest known lag; null if none is known',
  max_lag_partition INT COMMENT 'Partition of the greatest lag; null if none is known',
  lag_seconds DOUBLE COMMENT 'Greatest known age of a next record; null if none is known',
  lag_seconds_low DOUBLE COMMENT 'Lower bound of that age; null if unknown',
  lag_seconds_high DOUBLE COMMENT 'Upper bound of that age; null if unknown',
  lag_seconds_partition INT COMMENT 'Partition of that age; null if none is known',
  messages_lost BIGINT COMMENT 'Offsets deleted before the group read them; null if unknown',
  blocked_partitions INT NOT NULL COMMENT 'Number of partitions with an open transaction before the next record',
  blocked ARRAY<STRUCT<partition: INT, blocked_since: TIMESTAMP, blocked_since_method: STRING, blocked_by_producer_id: BIGINT, blocked_by_transactional_id: STRING>> COMMENT 'Partitions that an open transaction blocked in two samples',
  behind ARRAY<STRUCT<partition: INT, lag: BIGINT, lag_seconds: DOUBLE>> NOT NULL COMMENT 'Partitions with a lag greater than 0; ages to 0.1 s',
  commits_read_until TIMESTAMP NOT NULL COMMENT 'Time before which all commits are counted',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)'
)
USING DELTA
COMMENT 'Lag of groups by topic at each sample'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '3'
);
