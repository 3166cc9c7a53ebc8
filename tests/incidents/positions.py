"""Positions as the broker reports them: committed offsets and log ends, each known to hold at a moment between two times."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Between two responses that differ; without an answer for longer the values in between are unknown.
_MOST_GAP_SECONDS = 3.0


@dataclass(frozen=True)
class Bounds:
    """Least and greatest value; None where no value existed or none is known."""

    low: float
    high: float

    def has(self, value: float, tolerance: float = 0.0) -> bool:
        """Whether the value lies between them."""
        return self.low - tolerance <= value <= self.high + tolerance

    def meets(self, other: "Bounds", tolerance: float = 0.0) -> bool:
        """Whether they have a value in common."""
        return self.low - tolerance <= other.high and other.low <= self.high + tolerance

    def __str__(self) -> str:
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"


@dataclass
class Series:
    """Values of one position: request time, response time, value; None for no value."""

    asked: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)
    values: list[int | None] = field(default_factory=list)

    def add(self, asked: float, answered: float, value: int | None) -> None:
        """Add a response; of a run of equal values only the first and the last one are kept."""
        if len(self.values) >= 2 and self.values[-1] == self.values[-2] == value:
            self.asked[-1], self.answered[-1] = asked, answered
            return
        self.asked.append(asked)
        self.answered.append(answered)
        self.values.append(value)

    def during(self, start: float, end: float) -> list[int | None]:
        """Values that may have held at some time from `start` to `end`: those seen then, the one before and the one after."""
        first = max(0, bisect_left(self.answered, start) - 1)
        last = bisect_right(self.asked, end) + 1
        return self.values[first:last]

    def bounds(self, start: float, end: float) -> Bounds | None:
        """Least and greatest of these values."""
        known = [value for value in self.during(start, end) if value is not None]
        return Bounds(min(known), max(known)) if known else None

    def covers(self, start: float, end: float) -> bool:
        """Whether the values between two times are known: responses before and after, and no long gap between them."""
        if not self.values or start < self.asked[0] or end > self.answered[-1]:
            return False
        first, last = max(0, bisect_left(self.answered, start) - 1), bisect_right(self.asked, end)
        return all(
            # equal values of a run are stored as its first and its last one
            self.values[number] == self.values[number + 1] or self.asked[number + 1] - self.answered[number] <= _MOST_GAP_SECONDS
            for number in range(first, min(last, len(self.values) - 1))
        )

    def passed(self, offset: int, until: float) -> Bounds | None:
        """The times between which a log end that only grows became greater than an offset; None if it had not by `until`."""
        before: float | None = None
        for asked, answered, value in zip(self.asked, self.answered, self.values, strict=True):
            if value is not None and value > offset:
                return None if asked > until else Bounds(asked if before is None else before, answered)
            before = asked
        return None

    def stands_from(self, until: float) -> float | None:
        """The response that first had the value of time `until`, if it had another one before; None without a value."""
        last = bisect_right(self.asked, until) - 1
        if last < 0 or self.values[last] is None:
            return None
        first = next((number for number in range(last, -1, -1) if self.values[number] != self.values[last]), -1) + 1
        return self.answered[first]

    def plain(self) -> list[list[Any]]:
        """Rows for a file."""
        return [list(row) for row in zip(self.asked, self.answered, self.values, strict=True)]


@dataclass
class Positions:
    """Committed offsets by group, topic and partition; ends of logs by topic and partition."""

    committed: dict[tuple[str, str, int], Series] = field(default_factory=dict)
    ends: dict[tuple[str, int], Series] = field(default_factory=dict)

    def add_ends(self, asked: float, answered: float, ends: Mapping[tuple[str, int], int]) -> None:
        """Add one response of ListOffsets."""
        for key, value in ends.items():
            self.ends.setdefault(key, Series()).add(asked, answered, value)

    def add_committed(self, asked: float, answered: float, group: str, offsets: Mapping[tuple[str, int], int | None]) -> None:
        """Add one response of OffsetFetch."""
        for (topic, partition), value in offsets.items():
            self.committed.setdefault((group, topic, partition), Series()).add(asked, answered, value)

    def lag(self, group: str, topic: str, partition: int, start: float, end: float) -> Bounds | None:
        """The lags that a partition may have had from `start` to `end`."""
        committed = self.committed.get((group, topic, partition))
        ends = self.ends.get((topic, partition))
        if committed is None or ends is None or not (committed.covers(start, end) and ends.covers(start, end)):
            return None
        offset, log_end = committed.bounds(start, end), ends.bounds(start, end)
        if offset is None or log_end is None:
            return None
        return Bounds(max(0, log_end.low - offset.high), max(0, log_end.high - offset.low))

    def group_lag(self, group: str, topic: str, start: float, end: float) -> Bounds | None:
        """The sum over the partitions of a topic."""
        lags = [self.lag(*key, start, end) for key in self.partitions(group) if key[1] == topic]
        known = [each for each in lags if each is not None]
        return Bounds(sum(each.low for each in known), sum(each.high for each in known)) if known else None

    def age(self, topic: str, partition: int, offset: int, at: float) -> Bounds | None:
        """The age, at a time, of the record at an offset; None if it was not readable then."""
        ends = self.ends.get((topic, partition))
        readable = ends.passed(offset, at) if ends is not None and ends.covers(at, at) else None
        return None if readable is None else Bounds(max(0.0, at - readable.high), max(0.0, at - readable.low))

    def stands_from(self, group: str, until: float) -> float | None:
        """The time from which on no position of a group moved until a time; None if the group had none."""
        known = [self.committed[key].stands_from(until) for key in self.partitions(group)]
        return max((each for each in known if each is not None), default=None)

    def partitions(self, group: str) -> Iterable[tuple[str, str, int]]:
        """Partitions for which a group has committed."""
        return [key for key, series in self.committed.items() if key[0] == group and any(v is not None for v in series.values)]

    def plain(self) -> dict[str, Any]:
        """Rows for the truth file."""
        return {
            "committed": [[*key, series.plain()] for key, series in self.committed.items()],
            "ends": [[*key, series.plain()] for key, series in self.ends.items()],
        }
