"""Search for the time of a record by ListOffsets, which needs the ACL Describe only.

ListOffsets with a timestamp returns the first offset whose timestamp is at least the given one. Its inverse is the largest
timestamp among the records up to an offset. With LogAppendTime that is the append time of the record; with CreateTime some
earlier record may have a later time, so the age of the record is at least the age found.
"""

from dataclasses import dataclass
from typing import NamedTuple


class AppendTime(NamedTuple):
    """Bounds of the append time of the record at `offset`, by the clock of the broker, in ms: `from_ms <= time < until_ms`."""

    offset: int
    from_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class TimestampSearch:
    """Bisection for the largest timestamp among the records up to `offset`: `from_ms <= timestamp < until_ms`.

    Start with the bounds of `ReadableSince`. Request `next_timestamp_ms`, pass the answer to `narrowed`, repeat until it is
    None. One request of each leader and round serves all its partitions.
    """

    offset: int
    from_ms: int
    until_ms: int
    resolution_ms: int = 1_000

    @property
    def next_timestamp_ms(self) -> int | None:
        """Timestamp of the next ListOffsets request; None when the resolution is reached."""
        return None if self.until_ms - self.from_ms <= self.resolution_ms else (self.from_ms + self.until_ms) // 2

    def narrowed(self, timestamp_ms: int, first_offset: int | None) -> "TimestampSearch":
        """The search after an answer for `timestamp_ms`; None means that no record has such a timestamp (offset -1)."""
        if first_offset is not None and first_offset <= self.offset:
            return TimestampSearch(self.offset, max(self.from_ms, timestamp_ms), self.until_ms, self.resolution_ms)
        return TimestampSearch(self.offset, self.from_ms, min(self.until_ms, timestamp_ms), self.resolution_ms)

    def append_time(self, *, log_append_time: bool) -> AppendTime | None:
        """Bounds of the record's append time; None before the end of the search, and for topics with CreateTime."""
        if not log_append_time or self.next_timestamp_ms is not None:
            return None
        return AppendTime(self.offset, self.from_ms, self.until_ms)
