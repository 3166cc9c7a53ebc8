"""Kafka brokers of any version as child processes, without containers: for the demo, tests and benchmarks."""
