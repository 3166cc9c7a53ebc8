CREATE TABLE transaction_history (
  transactional_id STRING NOT NULL COMMENT 'Transactional id',
  state STRING NOT NULL COMMENT 'State after the batch; Dead: expired, Elsewhere: decides nothing',
  previous_state STRING COMMENT 'State before the batch; null for a new id',
  producer_id BIGINT COMMENT 'Producer id after the batch; null for an id that has expired',
  previous_producer_id BIGINT COMMENT 'Producer id before the batch; null for a new id',
  producer_epoch INT COMMENT 'Epoch after the batch; null for an id that has expired',
  previous_producer_epoch INT COMMENT 'Epoch before the batch; null for a new id',
  records BIGINT NOT NULL COMMENT 'Number of records of the id in the batch',
  initializations BIGINT NOT NULL COMMENT 'Number of those that initialized a producer (state Empty)',
  commits BIGINT NOT NULL COMMENT 'Number of those that completed a commit (state CompleteCommit)',
  aborts BIGINT NOT NULL COMMENT 'Number of those that completed an abort (state CompleteAbort)',
  start_timestamp TIMESTAMP COMMENT 'Start of the last transaction; null in states Empty and Dead',
  log_partition INT NOT NULL COMMENT 'Partition of __transaction_state that holds the source record; -1 for a poll',
  log_offset BIGINT NOT NULL COMMENT 'Offset of the source record',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of the source record',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)'
)
USING DELTA
COMMENT 'Changes of transactional ids: a row per id and batch'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
