"""Example log: a `__consumer_offsets` log with groups of many kinds, written by a Kafka 4.1.1 broker."""
