"""Errors of the coordinator's log."""

from coordinator_core.log.errors import LogError


class SegmentLogError(LogError):
    """Base class of the errors of the log."""


class LogInUse(SegmentLogError):
    """Another coordinator, or a broker, writes this folder."""


class PartitionsDiffer(SegmentLogError):
    """The folder has another number of partitions, so groups would map to the wrong partitions."""


class LogDamaged(SegmentLogError):
    """Records are damaged in a place where no crash of a writer causes damage. Nothing was cut off."""


class OldMessages(SegmentLogError):
    """Records have a format from before Kafka 0.11, which this log does not support. Nothing was cut off."""


class AppendFailed(SegmentLogError):
    """Nothing was appended; the log accepts further appends."""


class PartitionFailed(SegmentLogError):
    """The content on disk is unknown; the partition rejects appends until it is reopened."""


class CleanFailed(SegmentLogError):
    """A cleaning stopped. The log loads to the same state as before and accepts appends."""
