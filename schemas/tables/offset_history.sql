CREATE TABLE offset_history (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  topic STRING NOT NULL COMMENT 'Topic that was committed for',
  partition INT NOT NULL COMMENT 'Partition of that topic',
  change STRING NOT NULL COMMENT 'commit, rewind (the offset went back), tombstone, expire',
  committed_offset BIGINT COMMENT 'Committed offset; null when removed',
  previous_offset BIGINT COMMENT 'Committed offset before the batch; null when there was none',
  commits BIGINT NOT NULL COMMENT 'Commits for this partition in the batch',
  min_offset BIGINT COMMENT 'Smallest offset committed in the batch',
  leader_epoch INT COMMENT 'Leader epoch of the last commit',
  metadata STRING COMMENT 'Text committed along',
  commit_timestamp TIMESTAMP COMMENT 'When the coordinator took the last commit',
  producer_id BIGINT COMMENT 'Producer id of a transactional commit',
  log_partition INT NOT NULL COMMENT 'Partition of __consumer_offsets that the newest record behind this row is in',
  log_offset BIGINT NOT NULL COMMENT 'Offset of that record; a write never replaces a row of a newer one',
  record_timestamp TIMESTAMP COMMENT 'Timestamp of that record: when the coordinator appended it',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote this row; joins batches.batch_id'
)
USING DELTA
COMMENT 'What was committed, rewound, removed or expired: of a batch the last operation per group, topic and partition'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
