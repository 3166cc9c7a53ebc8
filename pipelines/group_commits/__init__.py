"""Offsets of Structured Streaming queries, committed as consumer groups, so that tools of Kafka show their lag."""
