"""What every place a log can be read from offers."""

from collections.abc import Iterator
from typing import Protocol
from uuid import UUID

from coordinator_core.log.columns import RecordColumns


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

    def topic_ids(self) -> dict[UUID, str]:
        """Names of the topic ids that the source can tell."""
        ...

    def close(self) -> None:
        """Lets go of connections and files."""
        ...
