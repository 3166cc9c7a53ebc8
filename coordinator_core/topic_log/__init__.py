"""The coordinator's log as a topic of a Kafka cluster, shared by several nodes."""
