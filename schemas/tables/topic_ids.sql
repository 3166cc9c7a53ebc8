CREATE TABLE topic_ids (
  topic_id STRING NOT NULL COMMENT 'Topic id in the base64 form of Kafka',
  topic STRING NOT NULL COMMENT 'Topic name',
  learned_from STRING NOT NULL COMMENT 'offset_commit, partition_metadata (a record, or a file beside the segments) or cluster',
  batch_id BIGINT NOT NULL COMMENT 'Batch that learned it'
)
USING DELTA
COMMENT 'Names of topic ids'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
