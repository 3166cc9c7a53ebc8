CREATE TABLE group_history (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  change STRING NOT NULL COMMENT 'Kind of change, such as rebalance or member_joined',
  member_id STRING COMMENT 'Member concerned',
  group_type STRING COMMENT 'Group type after the change; before it for a deletion',
  state STRING COMMENT 'State after the change',
  generation INT COMMENT 'Generation or group epoch after the change',
  detail STRING COMMENT 'Description of the change',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that holds the source record; -1 for a poll',
  log_offset BIGINT NOT NULL COMMENT 'Offset of the source record',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of the source record',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)'
)
USING DELTA
COMMENT 'Changes made by group records'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
