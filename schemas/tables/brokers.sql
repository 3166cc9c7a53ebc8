CREATE TABLE brokers (
  node_id INT NOT NULL COMMENT 'Node id of the broker',
  host STRING NOT NULL COMMENT 'Host that the broker advertises',
  port INT NOT NULL COMMENT 'Port that the broker advertises',
  rack STRING COMMENT 'Rack of the broker; null for none',
  is_controller BOOLEAN NOT NULL COMMENT 'Controller that clients are referred to',
  cluster_id STRING COMMENT 'Id of the cluster; null for brokers before 0.10.1',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)',
  cluster_version STRING COMMENT 'Newest release that the brokers understand; null before layout 1.7'
)
USING DELTA
COMMENT 'Live brokers of the cluster'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '1'
);
