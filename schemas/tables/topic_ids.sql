CREATE TABLE topic_ids (
  topic_id STRING NOT NULL COMMENT 'Topic id in base64, as Kafka prints it',
  topic STRING NOT NULL COMMENT 'Topic name',
  learned_from STRING NOT NULL COMMENT 'Source of the name: offset_commit, partition_metadata or cluster',
  batch_id BIGINT NOT NULL COMMENT 'Batch that first saw the name'
)
USING DELTA
COMMENT 'Names of topic ids'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '4'
);
