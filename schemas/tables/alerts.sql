CREATE TABLE alerts (
  fingerprint STRING NOT NULL COMMENT 'Deduplication key: hash of the labels, as in Alertmanager',
  rule STRING NOT NULL COMMENT 'Name of the rule',
  state STRING NOT NULL COMMENT 'pending, firing, or inactive until receivers accept the resolve',
  group_id STRING COMMENT 'Consumer group; null without one',
  topic STRING COMMENT 'Topic; null without one',
  partition INT COMMENT 'Partition of the topic; null without one',
  value DOUBLE COMMENT 'Value at the last change; null if unknown or a text',
  value_text STRING COMMENT 'Value at the last change, if it is a text',
  active_since TIMESTAMP NOT NULL COMMENT 'Start of the time in which the condition holds',
  fired_at TIMESTAMP COMMENT 'Time at which the alert fired; null while pending',
  resolved_at TIMESTAMP COMMENT 'Time at which the alert was resolved',
  clear_since TIMESTAMP COMMENT 'Time since which the condition does not hold',
  unknown_since TIMESTAMP COMMENT 'Time since which the value is unknown',
  reason STRING COMMENT 'Reason for the resolve: cleared, absent, unknown or rule_removed',
  instance MAP<STRING, STRING> NOT NULL COMMENT 'Labels that identify the alert within its rule',
  labels MAP<STRING, STRING> NOT NULL COMMENT 'All labels',
  annotations MAP<STRING, STRING> NOT NULL COMMENT 'Texts for people',
  deliveries ARRAY<STRUCT<receiver: STRING, is_open: BOOLEAN, is_confirmed: BOOLEAN, sent_at: TIMESTAMP, failures: INT, next_attempt_at: TIMESTAMP>> NOT NULL COMMENT 'Receivers, with the last notification of each',
  evaluated_at TIMESTAMP NOT NULL COMMENT 'Evaluation that wrote the row'
)
USING DELTA
COMMENT 'Alerts that are pending, firing, or resolved and not yet reported'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '5'
);
