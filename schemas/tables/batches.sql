CREATE TABLE batches (
  batch_id BIGINT NOT NULL COMMENT 'Batch id: ascending, without gaps',
  started_at TIMESTAMP NOT NULL COMMENT 'Start of the batch',
  finished_at TIMESTAMP NOT NULL COMMENT 'Completion of the writes to all other tables',
  generation BIGINT NOT NULL COMMENT 'Writer epoch: incremented whenever a job takes over the tables',
  era STRING NOT NULL COMMENT 'Era whose rules the tables follow',
  retention_ms BIGINT NOT NULL COMMENT 'Offset retention used for expires_at, in milliseconds',
  records_read BIGINT NOT NULL COMMENT 'Records read from the log',
  records_kept BIGINT NOT NULL COMMENT 'Records left after the reduction to the last per key',
  next_offsets MAP<INT, BIGINT> NOT NULL COMMENT 'Log partition → first offset of the next batch',
  versions MAP<STRING, BIGINT> NOT NULL COMMENT 'Table → Delta version of this batch',
  phase_ms MAP<STRING, BIGINT> NOT NULL COMMENT 'Phase → duration in milliseconds',
  written_by STRING COMMENT 'Version of Grouplake that wrote the batch; null before layout 1.1',
  transaction_offsets MAP<INT, BIGINT> COMMENT 'Partition of __transaction_state → first offset of the next batch',
  log_read_until TIMESTAMP COMMENT 'Time before which all records of the log are in the tables',
  records_behind BIGINT COMMENT 'Records of the log that were left to read; null if unknown',
  interval_seconds BIGINT COMMENT 'Expected time between two batches of the job; null if unknown',
  transaction_ms BIGINT COMMENT 'Age above which an open transaction hangs, in milliseconds',
  log_partition_count INT COMMENT 'Partitions of __consumer_offsets by which groups are placed; null if unknown',
  transaction_partition_count INT COMMENT 'Partitions of __transaction_state by which ids are placed; null if unknown',
  status_settings STRING COMMENT 'Settings of the section status, as JSON; null if unknown'
)
USING DELTA
COMMENT 'Batches and the table versions that belong together'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false'
);
