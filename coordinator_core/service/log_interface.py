"""What the service needs of a log, so that one may lie in segment files here and elsewhere later."""

from collections.abc import Iterable, Sequence
from typing import Protocol
from uuid import UUID

from coordinator_core.log.columns import RecordColumns
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.errors import PartitionFailed


class PartitionLog(Protocol):
    """One log partition. `append` is told the time; `read_columns` may run in another thread."""

    @property
    def leader_epoch(self) -> int:
        """Grows whenever the log is opened."""

    def read_columns(self) -> Iterable[RecordColumns]:
        """Everything, in pieces in the order of offsets."""

    def append(self, batches: Sequence[AppendBatch], now_ms: int) -> Sequence[int]:
        """All batches with one write; their base offsets. AppendFailed: nothing of them is there, and the log goes on.
        PartitionFailed: it does not."""


class CoordinatorLog(Protocol):
    """All log partitions of the coordinator. `flush` and `clean` run in other threads."""

    @property
    def partitions(self) -> int:
        """How many there are."""

    @property
    def topic_id(self) -> UUID:
        """Id of the topic."""

    def partition(self, number: int) -> PartitionLog:
        """One of them."""

    def flush(self, partitions: Sequence[int]) -> Sequence[PartitionFailed | None]:
        """Forces what was appended to these to the disk. The error of each, None for none: nobody knows what is there then."""

    def clean(self, now_ms: int) -> object:
        """Compacts the partition that needs it most, if one does; in a thread of its own. CleanFailed: it is as it was."""
