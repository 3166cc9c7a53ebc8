"""The coordinator's own log: partitions as segment files of Kafka's format, appended to, recovered and cleaned."""
