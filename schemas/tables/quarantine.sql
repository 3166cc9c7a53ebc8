CREATE TABLE quarantine (
  key BINARY COMMENT 'Key as logged; null for a damaged batch',
  value BINARY COMMENT 'Value as logged; null for a damaged batch',
  reason STRING NOT NULL COMMENT 'Reason why the bytes could not be decoded',
  log_partition INT NOT NULL COMMENT 'Partition of the log that holds the source record',
  log_offset BIGINT NOT NULL COMMENT 'Offset of the source record',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of the source record',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)',
  log_topic STRING COMMENT 'Topic of the log: __transaction_state, or null for __consumer_offsets'
)
USING DELTA
COMMENT 'Records and batches that could not be decoded'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
