CREATE TABLE ownership_history (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  topic STRING COMMENT 'Topic; null for an unknown topic id',
  topic_id STRING COMMENT 'Topic id in base64; null for classic groups',
  member_id STRING NOT NULL COMMENT 'Member id',
  group_instance_id STRING COMMENT 'Instance id of a static member',
  client_id STRING NOT NULL COMMENT 'Client id (client.id)',
  client_host STRING NOT NULL COMMENT 'Client address as seen by the broker',
  generation INT NOT NULL COMMENT 'Generation or group epoch after the record; -1 if unknown',
  gained ARRAY<INT> NOT NULL COMMENT 'Partitions that the record assigned to the member',
  lost ARRAY<INT> NOT NULL COMMENT 'Partitions that the record took from the member',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that holds the source record; -1 for a poll',
  log_offset BIGINT NOT NULL COMMENT 'Offset of the source record',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of the source record',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)'
)
USING DELTA
COMMENT 'Changes of the partitions of a member, by topic'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
