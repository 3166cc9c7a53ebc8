CREATE TABLE members (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  member_id STRING NOT NULL COMMENT 'Member id',
  group_instance_id STRING COMMENT 'Instance id of a static member',
  client_id STRING NOT NULL COMMENT 'client.id',
  client_host STRING NOT NULL COMMENT 'Address as the broker saw it',
  rack_id STRING COMMENT 'Rack of the client',
  session_timeout_ms INT COMMENT 'Session timeout; null where the configuration of the group decides',
  rebalance_timeout_ms INT COMMENT 'Rebalance timeout',
  subscribed_topics ARRAY<STRING> COMMENT 'Topics subscribed by name; null when the subscription cannot be read',
  subscribed_regex STRING COMMENT 'Regular expression of the subscription (KIP-848)',
  assigned ARRAY<STRUCT<topic: STRING, topic_id: STRING, partitions: ARRAY<INT>>> COMMENT 'Partitions the member owns; for streams members the source partitions of its active tasks',
  target ARRAY<STRUCT<topic: STRING, topic_id: STRING, partitions: ARRAY<INT>>> COMMENT 'Partitions it is to own (modern groups)',
  owned ARRAY<STRUCT<topic: STRING, topic_id: STRING, partitions: ARRAY<INT>>> COMMENT 'Partitions the member itself said it owned when it joined (cooperative assignors)',
  member_epoch INT COMMENT 'Member epoch (modern groups)',
  member_state STRING COMMENT 'STABLE, UNREVOKED_PARTITIONS or UNRELEASED_PARTITIONS (modern groups)',
  user_data BINARY COMMENT 'User data of the subscription',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that the newest record behind this row is in',
  log_offset BIGINT NOT NULL COMMENT 'Offset of that record; a write never replaces a row of a newer one',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of that record: when the coordinator appended it',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote this row; joins batches.batch_id'
)
USING DELTA
COMMENT 'Members of the groups'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
