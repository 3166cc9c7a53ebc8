CREATE TABLE share_offsets (
  group_id STRING NOT NULL COMMENT 'Share group',
  topic STRING COMMENT 'Topic; null for an error about the group',
  partition INT COMMENT 'Partition; null for an error about the group',
  start_offset BIGINT COMMENT 'Share-partition start offset; null before the group has read',
  lag BIGINT COMMENT 'Records not acknowledged; null if unknown, and before Kafka 4.2',
  leader_epoch INT COMMENT 'Leader epoch of the start offset; null if unknown',
  reason STRING COMMENT 'Error instead of an offset; null for none',
  answered_at TIMESTAMP NOT NULL COMMENT 'Time of the answer',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)'
)
USING DELTA
COMMENT 'Start offsets and lag of share groups'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '3'
);
