CREATE TABLE offset_history (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  topic STRING NOT NULL COMMENT 'Topic of the commit',
  partition INT NOT NULL COMMENT 'Partition of the topic',
  change STRING NOT NULL COMMENT 'Kind of change: commit, rewind, tombstone, expire, moved or elsewhere',
  committed_offset BIGINT COMMENT 'Committed offset; null after a removal',
  previous_offset BIGINT COMMENT 'Committed offset before the batch; null for none',
  commits BIGINT NOT NULL COMMENT 'Number of commits for the partition in the batch',
  min_offset BIGINT COMMENT 'Smallest offset of the batch; for rewinds, of those that went back',
  leader_epoch INT COMMENT 'Leader epoch of the last commit',
  metadata STRING COMMENT 'Metadata of the last commit',
  commit_timestamp TIMESTAMP COMMENT 'Time of the last commit on the coordinator',
  producer_id BIGINT COMMENT 'Producer id of a transactional commit',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that holds the source record; -1 for a poll',
  log_offset BIGINT NOT NULL COMMENT 'Offset of the source record',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of the source record',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)'
)
USING DELTA
COMMENT 'Changes of committed offsets: the last per partition and batch'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
