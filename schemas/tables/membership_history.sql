CREATE TABLE membership_history (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  group_type STRING NOT NULL COMMENT 'Group type after the record; before it for a deletion',
  state STRING NOT NULL COMMENT 'State after the record; Dead for a deleted group',
  previous_state STRING COMMENT 'State before the record; null for a new group',
  generation INT NOT NULL COMMENT 'Generation or group epoch after the record; -1 if unknown',
  previous_generation INT COMMENT 'Generation or group epoch before the record; null for a new group',
  protocol STRING COMMENT 'Assignor of the group',
  state_timestamp TIMESTAMP COMMENT 'Time of the last state change of a classic group',
  member_count INT NOT NULL COMMENT 'Number of members after the record',
  previous_member_count INT COMMENT 'Number of members before the record; null for a new group',
  members_with_partitions INT NOT NULL COMMENT 'Number of members with an assignment after the record',
  members_joined INT NOT NULL COMMENT 'Number of members that joined',
  members_left INT NOT NULL COMMENT 'Number of members that left, or whose session ended',
  members_replaced INT NOT NULL COMMENT 'Number of static members with a new member id',
  subscriptions_changed INT NOT NULL COMMENT 'Number of members with a new subscription',
  topics_changed BOOLEAN NOT NULL COMMENT 'New metadata of the subscribed topics (modern groups)',
  partitions_gained INT NOT NULL COMMENT 'Number of partitions with a new owner',
  partitions_lost INT NOT NULL COMMENT 'Number of partitions that their owner lost',
  partitions_transferred INT NOT NULL COMMENT 'Number of partitions that the record took from one owner for another',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that holds the source record; -1 for a poll',
  log_offset BIGINT NOT NULL COMMENT 'Offset of the source record',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of the source record',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)',
  members_unreadable INT COMMENT 'Number of members with an unreadable assignment after the record'
)
USING DELTA
COMMENT 'Generation, state and members after each change of a group'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
