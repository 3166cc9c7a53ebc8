CREATE TABLE offsets (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  topic STRING NOT NULL COMMENT 'Topic that was committed for',
  partition INT NOT NULL COMMENT 'Partition of that topic',
  committed_offset BIGINT NOT NULL COMMENT 'Next offset that the group will read',
  leader_epoch INT COMMENT 'Leader epoch of the last consumed record; null when the commit had none',
  metadata STRING NOT NULL COMMENT 'Text that the client committed along, exactly as logged',
  commit_timestamp TIMESTAMP COMMENT 'When the coordinator took the commit',
  expire_timestamp TIMESTAMP COMMENT 'Explicit expiry, or the default that brokers before 2.1 fill in while loading; null for none',
  topic_id STRING COMMENT 'Topic id that the commit carried (value version 4), in the base64 form of Kafka; null for none',
  producer_id BIGINT COMMENT 'Producer id of a transactional commit; null for a plain one',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that the newest record behind this row is in',
  log_offset BIGINT NOT NULL COMMENT 'Offset of that record; a write never replaces a row of a newer one',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of that record: when the coordinator appended it',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote this row; joins batches.batch_id'
)
USING DELTA
COMMENT 'Committed offsets: one row per group, topic and partition. Rows of groups that the era hides are in here too; committed_offsets leaves them out'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
