CREATE TABLE transactions (
  transactional_id STRING NOT NULL COMMENT 'Transactional id',
  state STRING NOT NULL COMMENT 'State: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit or CompleteAbort',
  producer_id BIGINT NOT NULL COMMENT 'Producer id of the transactional id',
  producer_epoch INT NOT NULL COMMENT 'Epoch of the producer',
  previous_producer_id BIGINT COMMENT 'Producer id before the last transition (Kafka 4.3+); null if unknown',
  next_producer_id BIGINT COMMENT 'Producer id after the transaction, if its epoch is exhausted',
  timeout_ms INT NOT NULL COMMENT 'Transaction timeout in milliseconds; 2147483647 for two-phase commits',
  partitions ARRAY<STRUCT<topic: STRING, partitions: ARRAY<INT>>> NOT NULL COMMENT 'Partitions of the open transaction, those of offsets included',
  start_timestamp TIMESTAMP COMMENT 'Start of the last transaction; null in state Empty',
  last_update_timestamp TIMESTAMP COMMENT 'Time of the last transition on the coordinator',
  client_transaction_version INT NOT NULL COMMENT 'Transaction version of the client; -1 if unknown',
  log_partition INT NOT NULL COMMENT 'Partition of __transaction_state that holds the source record; -1 for a poll',
  log_offset BIGINT NOT NULL COMMENT 'Offset of the source record',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of the source record',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)'
)
USING DELTA
COMMENT 'Transactional ids as a transaction coordinator loads them'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
