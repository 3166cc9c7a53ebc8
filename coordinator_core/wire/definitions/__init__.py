"""Definitions of messages that kafka-python does not ship, in the format of Kafka's own; `library.py` loads them."""
