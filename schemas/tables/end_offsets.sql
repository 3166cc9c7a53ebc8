CREATE TABLE end_offsets (
  topic STRING NOT NULL COMMENT 'Topic that a group has committed to',
  partition INT NOT NULL COMMENT 'Partition of the topic',
  answered_at TIMESTAMP NOT NULL COMMENT 'Time of the response with the log end',
  asked_at TIMESTAMP NOT NULL COMMENT 'Time of the request for the log end',
  topic_id STRING COMMENT 'Topic id in base64; null for brokers before 2.8',
  log_start BIGINT COMMENT 'First offset in the log; null for a failed sample',
  log_end BIGINT COMMENT 'High watermark; null for a failed sample',
  last_stable BIGINT COMMENT 'Last stable offset; null if it was not requested',
  leader_epoch INT COMMENT 'Epoch of the leader that answered; null if unknown',
  reason STRING COMMENT 'Reason for a failed sample; null otherwise',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)'
)
USING DELTA
COMMENT 'Samples of log start, log end and last stable offset'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '3'
);
