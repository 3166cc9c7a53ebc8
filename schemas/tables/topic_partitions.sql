CREATE TABLE topic_partitions (
  topic STRING NOT NULL COMMENT 'Topic of a group, or the topic read by the job',
  partition INT NOT NULL COMMENT 'Partition of the topic',
  topic_id STRING COMMENT 'Topic id in base64; null for brokers before 2.8',
  leader INT COMMENT 'Node id of the leader; null for none',
  replicas ARRAY<INT> NOT NULL COMMENT 'Node ids of the replicas, the preferred leader first',
  in_sync_replicas ARRAY<INT> NOT NULL COMMENT 'Node ids of the in-sync replicas',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)',
  cleanup_policy STRING COMMENT 'cleanup.policy of the topic; null if unknown, and before layout 1.7'
)
USING DELTA
COMMENT 'Leaders and replicas of the topics of groups'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '2'
);
