CREATE TABLE batches (
  batch_id BIGINT NOT NULL COMMENT 'Ascending, without gaps',
  started_at TIMESTAMP NOT NULL COMMENT 'Start of the batch',
  finished_at TIMESTAMP NOT NULL COMMENT 'When its other tables were written',
  generation BIGINT NOT NULL COMMENT 'Generation of the writer: counts up whenever a job takes over the tables',
  era STRING NOT NULL COMMENT 'Era whose rules made the tables',
  retention_ms BIGINT NOT NULL COMMENT 'Offset retention that expires_at is counted with',
  records_read BIGINT NOT NULL COMMENT 'Records read from the log',
  records_kept BIGINT NOT NULL COMMENT 'Records that the tasks handed on: the last per key, and group records whose effect depends on the tables',
  next_offsets MAP<INT, BIGINT> NOT NULL COMMENT 'Log partition → offset that the next batch starts at',
  versions MAP<STRING, BIGINT> NOT NULL COMMENT 'Table → Delta version that belongs to this batch',
  phase_ms MAP<STRING, BIGINT> NOT NULL COMMENT 'Milliseconds per phase'
)
USING DELTA
COMMENT 'One row per batch, written last: the table versions that belong together'
TBLPROPERTIES (
  'delta.enableDeletionVectors' = 'false'
);
