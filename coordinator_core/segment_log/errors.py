"""What the coordinator's log refuses, and what it gives up on."""

from coordinator_core.log.errors import LogError


class SegmentLogError(LogError):
    """Root of everything that the log raises."""


class LogInUse(SegmentLogError):
    """Somebody else writes this folder: another coordinator, or a broker."""


class PartitionsDiffer(SegmentLogError):
    """The folder has another number of partitions: groups would be looked for in the wrong ones."""


class LogDamaged(SegmentLogError):
    """Records are damaged where no crash of a writer damages them. Nothing was cut off."""


class OldMessages(SegmentLogError):
    """Records are in a format from before Kafka 0.11, which this log does not keep. Nothing was cut off."""


class AppendFailed(SegmentLogError):
    """The log has nothing of what was to be appended, and takes further appends."""


class PartitionFailed(SegmentLogError):
    """What is on disk is not known any more: the partition takes nothing until it is opened again."""


class CleanFailed(SegmentLogError):
    """A cleaning stopped. The log loads to the same state as before, and takes appends."""
