"""Interface of the sources of a log."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol
from uuid import UUID

from coordinator_core.log.columns import RecordColumns
from coordinator_core.log.damage import TornEnd

#: Partition numbers by topic name.
PartitionsByTopic = Mapping[str, Iterable[int]]


class LogSource(Protocol):
    """The partitions of one topic. Methods raise `LogError`; damage inside the log is reported with the columns."""

    def partitions(self) -> tuple[int, ...]:
        """Partition numbers, ascending."""
        ...

    def earliest_offsets(self) -> dict[int, int]:
        """First offset of each partition."""
        ...

    def end_offsets(self) -> dict[int, int]:
        """Current end of each partition: the offset of its next record."""
        ...

    def partition_count(self) -> int | None:
        """Number of partitions of the topic; None for a source that may lack some of them.

        Every record below the last `end_offsets` was written by a broker that knew of no more partitions.
        """
        ...

    def read_columns(self, partition: int, start: int, end: int) -> Iterator[RecordColumns]:
        """Yield the records from `start` up to, not including, `end`, in order.

        Raises `LogTruncated`, after yielding its records, if the partition ends before `start` or `end`, and `RecordsDeleted` if
        it starts after `start`. For files, a `start` of 0 is the start of the log at any offset.
        """
        ...

    def read_many(self, wanted: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, RecordColumns]]:
        """Yield (partition, records) of several partitions, each from its start up to, not including, its end, in log order."""
        ...

    def torn_ends(self) -> tuple[TornEnd, ...]:
        """Incomplete batches at the current end of partitions."""
        ...

    def topic_ids(self) -> dict[UUID, str]:
        """Names of the topic ids that the source knows."""
        ...

    @property
    def topic_id(self) -> UUID | None:
        """Id of the topic, None if unknown. A topic with the same name and another id is another log."""
        ...

    def leader_epochs(self) -> dict[int, int]:
        """Leader epoch of each partition at the last `end_offsets`, without partitions that have none."""
        ...

    def truncated_partitions(self, positions: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Find logs that were truncated below a position, even if they have grown beyond it since.

        `positions`: partition → an offset, and the leader epoch in which the log contained all records below it. Returns
        partition → the offset to which the log was truncated.
        """
        ...

    def close(self) -> None:
        """Release connections and files."""
        ...


def one_after_another(
    read_columns: Callable[[int, int, int], Iterator[RecordColumns]], wanted: Mapping[int, tuple[int, int]]
) -> Iterator[tuple[int, RecordColumns]]:
    """Implement `read_many` for sources that read one partition at a time."""
    for partition, (start, end) in wanted.items():
        for columns in read_columns(partition, start, end):
            yield partition, columns
