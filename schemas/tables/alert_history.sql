CREATE TABLE alert_history (
  at TIMESTAMP NOT NULL COMMENT 'Evaluation or delivery that made the row',
  change STRING NOT NULL COMMENT 'pending, firing, resolved, inactive, delivered, failed or given_up',
  rule STRING COMMENT 'Name of the rule; null for a delivery',
  fingerprint STRING COMMENT 'Deduplication key of the alert; null for a delivery',
  group_id STRING COMMENT 'Consumer group; null without one',
  topic STRING COMMENT 'Topic; null without one',
  partition INT COMMENT 'Partition of the topic; null without one',
  labels MAP<STRING, STRING> NOT NULL COMMENT 'Labels of the alert, or of the group of a delivery',
  value DOUBLE COMMENT 'Value at the change; null if unknown or a text',
  value_text STRING COMMENT 'Value at the change, if it is a text',
  reason STRING COMMENT 'Reason for a resolve, or for a failed delivery',
  receiver STRING COMMENT 'Receiver of a delivery; null for a transition',
  firing INT COMMENT 'Firing alerts in a delivery; null for a transition',
  resolved INT COMMENT 'Resolved alerts in a delivery; null for a transition',
  attempt INT COMMENT 'Number of the attempt; null for a transition',
  summary STRING COMMENT 'Annotation summary at the change; null for a delivery',
  unit STRING COMMENT 'Unit of the value: seconds, records or rebalances; null without one'
)
USING DELTA
COMMENT 'Transitions of alerts, and deliveries with their results'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingNumIndexedCols' = '5'
);
