"""Counts of the data records that small, unchanged lags consist of: markers and aborted records may be all that is left.

Counted is what a consumer with read_committed can read: up to the log end, or up to the last stable offset before an open
transaction. A range that was the same in two samples is counted once by a Fetch; before an open transaction it is enough that the
last stable offset was. The count is kept as long as the range does not change, also while records are appended after it.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.health import NONE, RecordCount, SampleColumns
from coordinator_core.health.record_counts import COUNTED_LAG
from coordinator_core.health.sample_columns import integers
from coordinator_core.log.errors import LogError
from pipelines.lag.columns import KEY

if TYPE_CHECKING:
    from coordinator_core.sources.record_counts import DataRecords

#: A lag that is the same in two samples.
_UNCHANGED = [*KEY, "group_offset", "until"]
_RANGE = ["topic", "partition", "group_offset", "until"]
_COUNTED = ["counted_from", "counted_to", "counted_records", "counted_first"]
_COUNTS_SCHEMA = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "group_offset": pa.int64(),
        "until": pa.int64(),
        **dict.fromkeys(_COUNTED, pa.int64()),
    }
)
#: Without the ACL Read, a range is tried again after this time.
_WITHOUT_ACL_MS = 3_600_000
#: After any other error, such as a leader that moves.
_RETRY_MS = 60_000

#: Reads ranges of (topic, partition); a text is the reason why a range cannot be read.
ReadRecords = Callable[[Mapping[tuple[str, int], tuple[int, int]]], "Mapping[tuple[str, int], DataRecords | str]"]


class ReadableEnds(NamedTuple):
    """By position, what the newest sample has of its partition; NONE for unknown.

    `last_stable_before` is the last stable offset in the sample before.
    """

    log_start: Int64s
    log_end: Int64s
    last_stable: Int64s
    last_stable_before: Int64s

    @classmethod
    def of(cls, samples: SampleColumns, partition: Int64s) -> Self:
        """Those of each row's partition, which is a number in `samples`; NONE throughout for partition -1."""
        newest = samples.newest
        has_earlier = newest > samples.starts[:-1]
        before = np.where(has_earlier, samples.last_stable[newest - has_earlier], NONE)
        columns = (samples.log_start[newest], samples.log_end[newest], samples.last_stable[newest], before)
        return cls(*(np.append(column, NONE)[partition] for column in columns))

    @property
    def is_open(self) -> Numbers:
        """Partitions with an open transaction."""
        found: Numbers = (self.last_stable != NONE) & (self.last_stable < self.log_end)
        return found

    @property
    def until(self) -> Int64s:
        """First offset that a consumer with read_committed cannot read."""
        return np.where(self.is_open, self.last_stable, self.log_end)


class CountedRecords:
    """Counts of records by group and partition. At most `most_partitions` partitions are read per sample."""

    def __init__(self, read: ReadRecords, most_partitions: int) -> None:
        self._read = read
        self._most = most_partitions
        self._before: pa.Table | None = None
        self._counts = _COUNTS_SCHEMA.empty_table()
        self._retry_at_ms: dict[tuple[str, int], int] = {}

    def begin(self, lag: pa.Table) -> None:
        """Continue with the rows of the table `lag`, so that two runs see whether a lag has changed."""
        self._before = lag.select([*KEY, "group_offset", "latest_offset"]).rename_columns(_UNCHANGED)

    def columns(self, positions: pa.Table, ends: ReadableEnds, now_ms: int) -> dict[str, Int64s]:
        """The columns `counted_*` of `CommitColumns`, a row per position. Counts that are due are read first."""
        offset, until = integers(positions["committed_offset"]), ends.until
        known = (offset != NONE) & (until != NONE)
        lag = np.where(known, until, 0) - np.where(known, offset, 0)
        rows = np.flatnonzero((lag > 0) & (lag <= COUNTED_LAG))
        small = positions.select(KEY).take(pa.array(rows))
        small = small.append_column("group_offset", pa.array(offset[rows]))
        small = small.append_column("until", pa.array(until[rows]))
        before, self._before = self._before, small
        result = {name: np.full(positions.num_rows, NONE) for name in _COUNTED}
        if not len(rows):
            return result
        small = small.append_column("row", pa.array(rows))
        is_held = pa.array((ends.is_open & (ends.last_stable == ends.last_stable_before))[rows])
        unchanged = small.filter(is_held)
        if before is not None:
            others = small.filter(pc.invert(is_held)).join(before, _UNCHANGED, join_type="inner")
            unchanged = pa.concat_tables([unchanged, others.select(unchanged.column_names)])
        self._count(unchanged, ends.log_start, now_ms)
        self._counts = self._counts.join(unchanged.select(_RANGE), _RANGE, join_type="left semi")
        found = unchanged.join(self._counts, _RANGE, join_type="inner")
        for name, column in result.items():
            column[integers(found["row"])] = integers(found[name])
        return result

    def _count(self, unchanged: pa.Table, log_start: Int64s, now_ms: int) -> None:
        """Read the ranges that have no count yet, the smallest first."""
        missing = unchanged.join(self._counts.select(_RANGE), _RANGE, join_type="left anti")
        if not missing.num_rows:
            return
        missing = missing.append_column("lag", pc.subtract(missing["until"], missing["group_offset"])).sort_by("lag")
        ranges: dict[tuple[str, int], tuple[int, int]] = {}
        offsets: dict[tuple[str, int], set[int]] = {}
        self._retry_at_ms = {key: at for key, at in self._retry_at_ms.items() if at > now_ms}
        for row in missing.select([*_RANGE, "row"]).to_pylist():
            key = (row["topic"], row["partition"])
            if key in self._retry_at_ms or (key not in ranges and len(ranges) >= self._most):
                continue
            start = max(row["group_offset"], int(log_start[row["row"]]))
            ranges[key] = min(start, ranges.get(key, (start, 0))[0]), row["until"]
            offsets.setdefault(key, set()).add(row["group_offset"])
        if not ranges:
            return
        try:
            results = self._read(ranges)
        except LogError:
            # the sample has just succeeded; the next one tries again
            return
        counts = []
        for key, found in results.items():
            if isinstance(found, str):
                self._retry_at_ms[key] = now_ms + retry_after_ms(found)
                continue
            counts += [(*key, offset, ranges[key][1], found.left_to(offset)) for offset in offsets[key]]
        self._counts = pa.concat_tables([self._counts, _counts_table(counts)])


def retry_after_ms(reason: str) -> int:
    """Time after which a range that could not be read is tried again."""
    return _WITHOUT_ACL_MS if reason.endswith("authorization_failed") else _RETRY_MS


def _counts_table(counts: list[tuple[str, int, int, int, RecordCount]]) -> pa.Table:
    rows = [(topic, partition, start, end, *count) for topic, partition, start, end, count in counts]
    columns = zip(*rows, strict=True) if rows else [[]] * len(_COUNTS_SCHEMA)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, _COUNTS_SCHEMA, strict=True)], _COUNTS_SCHEMA)
