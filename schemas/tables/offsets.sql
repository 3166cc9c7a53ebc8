CREATE TABLE offsets (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  topic STRING NOT NULL COMMENT 'Topic of the commit',
  partition INT NOT NULL COMMENT 'Partition of the topic',
  committed_offset BIGINT NOT NULL COMMENT 'Offset of the next record to read',
  leader_epoch INT COMMENT 'Leader epoch of the last consumed record; null for none',
  metadata STRING NOT NULL COMMENT 'Metadata of the commit, exactly as logged',
  commit_timestamp TIMESTAMP COMMENT 'Time of the commit on the coordinator',
  expire_timestamp TIMESTAMP COMMENT 'Expiry of the commit value (before Kafka 2.1); null for none',
  topic_id STRING COMMENT 'Topic id of the commit, in base64; null for none',
  producer_id BIGINT COMMENT 'Producer id of a transactional commit; null for a plain one',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that holds the source record; -1 for a poll',
  log_offset BIGINT NOT NULL COMMENT 'Offset of the source record',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of the source record',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)'
)
USING DELTA
COMMENT 'Committed offsets, those of hidden groups included'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
