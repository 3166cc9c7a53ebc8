CREATE TABLE members (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  member_id STRING NOT NULL COMMENT 'Member id',
  group_instance_id STRING COMMENT 'Instance id of a static member',
  client_id STRING NOT NULL COMMENT 'Client id (client.id)',
  client_host STRING NOT NULL COMMENT 'Client address as seen by the broker',
  rack_id STRING COMMENT 'Rack of the client',
  session_timeout_ms INT COMMENT 'Session timeout; null when set by the group configuration',
  rebalance_timeout_ms INT COMMENT 'Rebalance timeout',
  subscribed_topics ARRAY<STRING> COMMENT 'Topics subscribed by name; null for an unreadable subscription',
  subscribed_regex STRING COMMENT 'Regular expression of the subscription (KIP-848)',
  assigned ARRAY<STRUCT<topic: STRING, topic_id: STRING, partitions: ARRAY<INT>>> COMMENT 'Partitions assigned to the member; null for an unreadable assignment',
  target ARRAY<STRUCT<topic: STRING, topic_id: STRING, partitions: ARRAY<INT>>> COMMENT 'Partitions of the target assignment (modern groups); null if unknown',
  owned ARRAY<STRUCT<topic: STRING, topic_id: STRING, partitions: ARRAY<INT>>> COMMENT 'Partitions reported as owned at the last join (cooperative assignors)',
  member_epoch INT COMMENT 'Member epoch (modern groups)',
  member_state STRING COMMENT 'Member state, such as STABLE or UNREVOKED_PARTITIONS (modern groups)',
  user_data BINARY COMMENT 'User data of the subscription',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that holds the source record; -1 for a poll',
  log_offset BIGINT NOT NULL COMMENT 'Offset of the source record',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of the source record',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)',
  assignment_problem STRING COMMENT 'Reason why the assignment cannot be read; null otherwise',
  standby_tasks INT COMMENT 'Number of standby and warm-up tasks (Kafka Streams); null for other members'
)
USING DELTA
COMMENT 'Members of the groups'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
