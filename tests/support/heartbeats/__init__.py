"""Definitions of heartbeats that no client of Python has, in the format of Kafka's own."""
