"""A `__consumer_offsets` log to try commands on: groups of every kind, written by a Kafka 4.1.1 broker."""
