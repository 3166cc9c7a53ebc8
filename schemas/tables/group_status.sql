CREATE TABLE group_status (
  group_id STRING NOT NULL COMMENT 'Consumer group',
  status STRING NOT NULL COMMENT 'Status: NOTFOUND, OK, UNKNOWN, WARN, ERR, STOP, STALL or REWIND',
  rule STRING COMMENT 'Rule of the root cause; null without committed offsets that count',
  topic STRING COMMENT 'Topic of the deciding finding; null for the whole group',
  partition INT COMMENT 'Partition of the deciding finding; null for the whole group',
  window_rows INT COMMENT 'Events that the rule looked at; null for a single value',
  window_seconds DOUBLE COMMENT 'Span of these events; null for a single value',
  detail STRING NOT NULL COMMENT 'Sentence about the deciding findings',
  findings ARRAY<STRUCT<rule: STRING, status: STRING, topic: STRING, partition: INT, detail: STRING, window_rows: INT, window_seconds: DOUBLE, from_offset: BIGINT, to_offset: BIGINT, by: STRING, since: TIMESTAMP, transactional_id: STRING, client_id: STRING, member_host: STRING, ownership: STRING, amount: BIGINT, total: BIGINT, due: TIMESTAMP, reason: STRING, consequence: STRING, next_step: STRING, caused_by: STRING, producer_id: BIGINT, rate: DOUBLE>> NOT NULL COMMENT 'Findings except OK by incident, each cause before its symptoms',
  burrow_status STRING NOT NULL COMMENT 'Status of the group by the rules of Burrow alone',
  partitions INT NOT NULL COMMENT 'Number of committed partitions',
  unknown_partitions INT NOT NULL COMMENT 'Number of committed partitions with unknown lag',
  complete DOUBLE NOT NULL COMMENT 'Share of partitions with a full window',
  total_lag BIGINT COMMENT 'Sum of the known lags; null if none is known',
  max_lag BIGINT COMMENT 'Greatest known lag; null if none is known',
  max_lag_topic STRING COMMENT 'Topic of the greatest lag; null if none is known',
  max_lag_partition INT COMMENT 'Partition of the greatest lag; null if none is known',
  evaluated_at TIMESTAMP NOT NULL COMMENT 'Time for which the status holds',
  batch_id BIGINT NOT NULL COMMENT 'Batch that wrote the row (batches.batch_id)',
  facts ARRAY<STRUCT<fact: STRING, topic: STRING, partition: INT, partitions: INT, since: TIMESTAMP, due: TIMESTAMP, interval_seconds: DOUBLE, detail: STRING>> COMMENT 'Facts that do not count for the status; null before layout 1.6'
)
USING DELTA
COMMENT 'Status of groups at the last sample'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '1'
);
