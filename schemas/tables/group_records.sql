CREATE TABLE group_records (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  key BINARY NOT NULL COMMENT 'Key of the record',
  value BINARY NOT NULL COMMENT 'Value of the record',
  record_type INT NOT NULL COMMENT 'Record type: 2 classic group, 3 and up modern groups',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that the newest record behind this row is in',
  log_offset BIGINT NOT NULL COMMENT 'Offset of that record; a write never replaces a row of a newer one',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of that record: when the coordinator appended it',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote this row; joins batches.batch_id'
)
USING DELTA
COMMENT 'The group records of the log that the current groups are made of, as the log has them: what a loader would need of it'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
