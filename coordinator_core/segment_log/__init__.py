"""The coordinator's own log: partitions of segment files in Kafka's format, with appends, recovery and compaction."""
