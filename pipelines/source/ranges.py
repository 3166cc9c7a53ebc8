"""Ranges of the log: offsets of the stream, admission control, and packing into tasks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

#: Offset of the stream: log partition → next offset to read.
Offsets = Mapping[int, int]


class AskedEnds(NamedTuple):
    """End offsets of the log partitions, requested at `asked_at_ms`. `partitions` is the number of partitions of the topic."""

    offsets: Offsets
    asked_at_ms: int
    #: None for a source that may lack some of them.
    partitions: int | None = None


class AskedEnd(NamedTuple):
    """End offset of one log partition, requested at `asked_at_ms`, and the number of partitions of the topic then."""

    offset: int
    asked_at_ms: int
    partitions: int | None = None


@dataclass(frozen=True)
class LogRange:
    """Records of one log partition with `start` ≤ offset < `end`. `asked` is the end of the partition; None if unknown."""

    partition: int
    start: int
    end: int
    asked: AskedEnd | None = None

    @property
    def size(self) -> int:
        """Number of offsets; in a compacted log an upper bound of the number of records."""
        return self.end - self.start


def ranges(start: Offsets, end: Offsets, ends: AskedEnds | None = None) -> list[LogRange]:
    """The ranges between two offsets of the stream. `ends` are the ends of the log that `end` was chosen from."""
    found = [LogRange(p, start.get(p, 0), end[p]) for p in sorted(end) if end[p] > start.get(p, 0)]
    if ends is None or any(ends.offsets.get(each.partition, -1) < each.end for each in found):
        return found
    return [replace(each, asked=AskedEnd(ends.offsets[each.partition], ends.asked_at_ms, ends.partitions)) for each in found]


def new_offsets(start: Offsets, end: Offsets) -> int:
    """Number of offsets between two offsets of the stream; in a compacted log an upper bound of the number of records."""
    return sum(r.size for r in ranges(start, end))


def admit(start: Offsets, end: Offsets, max_records: int) -> dict[int, int]:
    """Limit the end to about `max_records` offsets after `start`, distributed in proportion to the sizes of the ranges."""
    todo = ranges(start, end)
    total = new_offsets(start, end)
    if total <= max_records:
        return dict(end)
    # at least one offset each: otherwise a small partition beside a huge one would never advance
    return {**start, **{r.partition: r.start + max(1, r.size * max_records // total) for r in todo}}


def pack(todo: Iterable[LogRange], tasks: int) -> list[list[LogRange]]:
    """Distribute ranges to at most `tasks` lists of similar size, largest ranges first."""
    bins: list[list[LogRange]] = [[] for _ in range(max(1, tasks))]
    sizes = [0] * len(bins)
    for one in sorted(todo, key=lambda r: r.size, reverse=True):
        smallest = sizes.index(min(sizes))
        bins[smallest].append(one)
        sizes[smallest] += one.size
    return [b for b in bins if b]
