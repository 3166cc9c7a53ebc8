CREATE TABLE partition_status (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  topic STRING NOT NULL COMMENT 'Topic of the commit',
  partition INT NOT NULL COMMENT 'Partition of the topic',
  status STRING NOT NULL COMMENT 'Status by the rules of Burrow: OK, WARN, STOP, STALL or REWIND',
  rule STRING NOT NULL COMMENT 'Rule that decided: burrow_0 to burrow_7',
  owner STRING COMMENT 'Host of the owner; null without owner',
  client_id STRING COMMENT 'Client id of the owner; null without owner',
  start_offset BIGINT NOT NULL COMMENT 'Offset of the first commit of the window',
  start_timestamp TIMESTAMP NOT NULL COMMENT 'Time of the first commit of the window',
  start_lag BIGINT COMMENT 'Lag at the first commit of the window; null if unknown',
  end_offset BIGINT NOT NULL COMMENT 'Offset of the last commit',
  end_timestamp TIMESTAMP NOT NULL COMMENT 'Time of the last commit',
  end_lag BIGINT COMMENT 'Lag at the last commit; null if unknown',
  current_lag BIGINT NOT NULL COMMENT 'Last sampled log end minus the last commit, at least 0',
  window_rows INT NOT NULL COMMENT 'Number of commits in the window',
  window_seconds DOUBLE NOT NULL COMMENT 'Time between the first and the last commit of the window',
  complete DOUBLE NOT NULL COMMENT 'Filled share of the window',
  evaluated_at TIMESTAMP NOT NULL COMMENT 'Time for which the status holds',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)'
)
USING DELTA
COMMENT 'Burrow status of committed partitions at the last sample'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '3'
);
