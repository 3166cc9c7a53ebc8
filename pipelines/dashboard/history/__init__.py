"""Histories of groups, topics and clients in a span of time."""
