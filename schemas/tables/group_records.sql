CREATE TABLE group_records (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  key BINARY NOT NULL COMMENT 'Key of the record',
  value BINARY NOT NULL COMMENT 'Value of the record',
  record_type INT NOT NULL COMMENT 'Record type: 2 for classic groups, 3 and above for modern ones',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that holds the source record; -1 for a poll',
  log_offset BIGINT NOT NULL COMMENT 'Offset of the source record',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of the source record',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)'
)
USING DELTA
COMMENT 'Group records that the current groups are made of, as logged'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
