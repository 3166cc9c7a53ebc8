CREATE TABLE groups (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  group_type STRING NOT NULL COMMENT 'classic, simple (offsets only), consumer (KIP-848), share (KIP-932) or streams (KIP-1071)',
  state STRING NOT NULL COMMENT 'State as the loader gives it: Empty, Stable, Assigning, Reconciling, NotReady',
  generation INT NOT NULL COMMENT 'Generation of a classic group, group epoch of a modern one',
  protocol_type STRING COMMENT 'Protocol type of a classic group, such as consumer or connect',
  protocol STRING COMMENT 'Assignor that the group chose',
  leader STRING COMMENT 'Member id of the leader of a classic group',
  state_timestamp TIMESTAMP COMMENT 'When a classic group entered its state (value version 2 and later)',
  member_count INT NOT NULL COMMENT 'Members',
  subscribed_topics ARRAY<STRING> COMMENT 'Topics whose offsets the subscription keeps from expiring; null when unknown or when the type has no such rule',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that the newest record behind this row is in',
  log_offset BIGINT NOT NULL COMMENT 'Offset of that record; a write never replaces a row of a newer one',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of that record: when the coordinator appended it',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote this row; joins batches.batch_id'
)
USING DELTA
COMMENT 'Consumer groups as a coordinator that loads the log has them'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
