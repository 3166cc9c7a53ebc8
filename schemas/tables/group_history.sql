CREATE TABLE group_history (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  change STRING NOT NULL COMMENT 'group_created, group_deleted, type_changed, rebalance, state_changed, protocol_changed, leader_changed, member_joined, member_left, assignment_changed, expire (our sweep), anomaly (a record that a loader would not take)',
  member_id STRING COMMENT 'Member that the change is about',
  group_type STRING COMMENT 'Group type after the change, before it for a deletion',
  state STRING COMMENT 'State after the change',
  generation INT COMMENT 'Generation or group epoch after the change',
  detail STRING COMMENT 'What changed, in words',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that the newest record behind this row is in',
  log_offset BIGINT NOT NULL COMMENT 'Offset of that record; a write never replaces a row of a newer one',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of that record: when the coordinator appended it',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote this row; joins batches.batch_id'
)
USING DELTA
COMMENT 'What group records changed, every one of them'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
