"""What every place a log can be read from offers."""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol
from uuid import UUID

from coordinator_core.log.columns import RecordColumns
from coordinator_core.log.damage import TornEnd


class LogSource(Protocol):
    """The partitions of one topic. Whatever cannot be read raises a `LogError`; damage inside the log comes with the columns."""

    def partitions(self) -> tuple[int, ...]:
        """Partition numbers, ascending."""
        ...

    def earliest_offsets(self) -> dict[int, int]:
        """Where each partition begins."""
        ...

    def end_offsets(self) -> dict[int, int]:
        """Where each partition ends now: the offset its next record will get."""
        ...

    def read_columns(self, partition: int, start: int, end: int) -> Iterator[RecordColumns]:
        """The records from `start` up to, not including, `end`, in order.

        A partition that ends before `start` or `end` raises `LogTruncated`, after whatever it has; one that begins behind
        `start` raises `RecordsDeleted`. To files, a `start` of 0 means the beginning wherever that is.
        """
        ...

    def read_many(self, wanted: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, RecordColumns]]:
        """Several partitions, each from its start up to, not including, its end: (partition, records), per partition in order."""
        ...

    def torn_ends(self) -> tuple[TornEnd, ...]:
        """Where a partition ends now in bytes that are no whole batch."""
        ...

    def topic_ids(self) -> dict[UUID, str]:
        """Names of the topic ids that the source can tell."""
        ...

    @property
    def topic_id(self) -> UUID | None:
        """Id of the topic that is read, None where nothing tells it. Another id is another log, whatever its name."""
        ...

    def leader_epochs(self) -> dict[int, int]:
        """Leader epoch of each partition when `end_offsets` last asked; partitions that have none are left out."""
        ...

    def cut_back(self, positions: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Partitions whose log was cut back below a position since, however far it has grown again: where it was cut.

        `positions`: partition → an offset, and the leader epoch in which the log held everything below it.
        """
        ...

    def close(self) -> None:
        """Lets go of connections and files."""
        ...


def one_after_another(
    read_columns: Callable[[int, int, int], Iterator[RecordColumns]], wanted: Mapping[int, tuple[int, int]]
) -> Iterator[tuple[int, RecordColumns]]:
    """`read_many` of a source that gains nothing from reading partitions together."""
    for partition, (start, end) in wanted.items():
        for columns in read_columns(partition, start, end):
            yield partition, columns
