CREATE TABLE groups (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  group_type STRING NOT NULL COMMENT 'Group type: classic, simple, consumer, share or streams',
  state STRING NOT NULL COMMENT 'State after a load: Empty, Stable, Assigning, Reconciling or NotReady',
  generation INT NOT NULL COMMENT 'Generation, or group epoch of a modern group; -1 if unknown',
  protocol_type STRING COMMENT 'Protocol type of a classic group, such as consumer or connect',
  protocol STRING COMMENT 'Assignor of the group',
  leader STRING COMMENT 'Member id of the leader of a classic group',
  state_timestamp TIMESTAMP COMMENT 'Time of the last state change of a classic group',
  member_count INT NOT NULL COMMENT 'Number of members',
  subscribed_topics ARRAY<STRING> COMMENT 'Subscribed topics, whose offsets do not expire; null when unknown',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that holds the source record; -1 for a poll',
  log_offset BIGINT NOT NULL COMMENT 'Offset of the source record',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of the source record',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)'
)
USING DELTA
COMMENT 'Consumer groups as a coordinator loads them'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
