"""Ranges of the log: offsets of the stream, admission control, and packing into tasks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: Offset of the stream: log partition → next offset to read.
Offsets = Mapping[int, int]


@dataclass(frozen=True)
class LogRange:
    """Records of one log partition with `start` ≤ offset < `end`."""

    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Offsets in the range; in a compacted log an upper bound of its records."""
        return self.end - self.start


def ranges(start: Offsets, end: Offsets) -> list[LogRange]:
    """What lies between two offsets of the stream."""
    return [LogRange(p, start.get(p, 0), end[p]) for p in sorted(end) if end[p] > start.get(p, 0)]


def admit(start: Offsets, end: Offsets, max_records: int) -> dict[int, int]:
    """An end that is at most `max_records` offsets on, every partition advancing in proportion to what it has."""
    todo = ranges(start, end)
    total = sum(r.size for r in todo)
    if total <= max_records:
        return dict(end)
    # at least one offset each, or a small partition beside a huge one would never move
    return {**start, **{r.partition: r.start + max(1, r.size * max_records // total) for r in todo}}


def pack(todo: Iterable[LogRange], tasks: int) -> list[list[LogRange]]:
    """Ranges in at most `tasks` lists of about the same size, largest first."""
    bins: list[list[LogRange]] = [[] for _ in range(max(1, tasks))]
    sizes = [0] * len(bins)
    for one in sorted(todo, key=lambda r: r.size, reverse=True):
        smallest = sizes.index(min(sizes))
        bins[smallest].append(one)
        sizes[smallest] += one.size
    return [b for b in bins if b]
