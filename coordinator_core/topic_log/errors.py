"""Errors of a log that is a topic."""

from coordinator_core.log.errors import LogError
from coordinator_core.segment_log.errors import PartitionFailed


class TopicUnsuitable(LogError):
    """The topic exists, but a coordinator cannot use it as its log."""


class PartitionLost(PartitionFailed):
    """The outcome of an append is unknown: the partition must be loaded again by whoever owns it."""


class PartitionFenced(PartitionFailed):
    """Another owner writes the partition: this one has lost it, until it is assigned anew."""
