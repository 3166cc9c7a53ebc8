"""Windows of the last commits of all partitions, as columns. Each sample adds the rows of `offset_history` since the one before.

The first sample of a process reads the history of `window_ms`; older commits are not in a
window, except the last one of a partition. So a window does not depend on the age of the process. Times in ms.
"""

from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import Int64s
from coordinator_core.codec.runs import ranks_in_runs
from coordinator_core.health import NONE, SampleColumns, StatusSettings, WindowColumns
from coordinator_core.health.sample_columns import integers
from coordinator_core.health.time_limits import difference
from pipelines.lag.columns import KEY, milliseconds, row_numbers, select
from pipelines.lag.tables.offset_changes import COMMITTED_AT, ChangesAfter
from pipelines.query.engine import Snapshot
from pipelines.query.histories import IS_CHANGE
from pipelines.runtime.timestamps import at_ms as timestamp
from pipelines.tables.store import timestamp_literal

HISTORY_COLUMNS = (
    f"group_id, topic, partition, change, committed_offset, previous_offset, min_offset, {COMMITTED_AT} AS committed_at, batch_id"
)
_RECENT = """
SELECT group_id, topic, partition, change, committed_offset, previous_offset, min_offset, committed_at, batch_id
FROM (
  SELECT {columns}, row_number() OVER (PARTITION BY group_id, topic, partition ORDER BY batch_id DESC) AS place
  FROM offset_history WHERE {is_change} AND {committed_at} >= {since}
) h
WHERE place <= {rows}
"""
_MOVED = f"""
SELECT group_id, topic, partition, max({COMMITTED_AT}) AS moved_at
FROM offset_history
WHERE {IS_CHANGE} AND (change = 'rewind' OR previous_offset IS NULL OR previous_offset <> committed_offset)
GROUP BY group_id, topic, partition
"""


class _Events(NamedTuple):
    """Commits in the order of time: row of the partition, offset (NONE for a removal), time, lag at that time."""

    row: Int64s
    offset: Int64s
    at_ms: Int64s
    lag: Int64s


class CommitEvents(NamedTuple):
    """Commits sorted by row and in the order of the log: row of the position, offset (NONE for a removal), time."""

    row: Int64s
    offset: Int64s
    at_ms: Int64s

    @classmethod
    def none(cls) -> Self:
        """No commits."""
        return cls(*(np.zeros(0, np.int64) for _ in range(3)))


def commit_events(rows: pa.Table, positions: pa.Table) -> CommitEvents:
    """The commits in rows of `offset_history` of the partitions in `positions`."""
    row = row_numbers(rows, positions)
    order = np.lexsort((integers(rows["batch_id"]), row))
    order = order[row[order] >= 0]
    row = row[order]
    offset, at = integers(rows["committed_offset"])[order], milliseconds(rows["committed_at"])[order]
    change = rows["change"].to_numpy()
    low = np.where(change == "rewind", integers(rows["min_offset"]), NONE)[order]
    is_new = (change[order] == "commit") & (offset < integers(rows["previous_offset"])[order])
    # a rewind is two commits: the lowest one of the batch, then the last one; a new offset follows a removal in the batch
    two = is_new | ((low != NONE) & (low < offset))
    twice = np.repeat(np.arange(len(row)), 1 + two)
    is_first = np.append(twice[1:] == twice[:-1], False)
    return CommitEvents(row[twice], np.where(is_first, low[twice], offset[twice]), at[twice])


class CommitWindows:
    """Windows of the rows of the last `refresh`, in their order."""

    def __init__(self, settings: StatusSettings) -> None:
        self._settings = settings
        self._keys: pa.Table | None = None
        self._read_until = -1
        #: The commits that the last `refresh` added.
        self.added = CommitEvents.none()
        self._set_empty(0)

    def _set_empty(self, rows: int) -> None:
        shape = (rows, self._settings.window_commits)
        self._offset, self._at, self._lag = np.full(shape, NONE), np.zeros(shape, np.int64), np.full(shape, NONE)
        #: Time of the commit that moved each offset to its value; NONE for unknown.
        self.moved_at_ms = np.full(rows, NONE)

    def refresh(
        self,
        snapshot: Snapshot,
        changes_after: ChangesAfter,
        positions: pa.Table,
        partition: Int64s,
        samples: SampleColumns,
        now_ms: int,
    ) -> None:
        """Add the commits until the batch of `snapshot`.

        `positions` has a row per group and partition, `partition` their numbers in `samples` (-1 for none).
        """
        is_first = self._keys is None
        if is_first:
            since = timestamp_literal(timestamp(now_ms - self._settings.window_ms))
            recent = _RECENT.format(
                columns=HISTORY_COLUMNS,
                is_change=IS_CHANGE,
                committed_at=COMMITTED_AT,
                since=since,
                rows=self._settings.window_commits,
            )
            changes = select(snapshot, recent)
        else:
            changes = changes_after(snapshot, self._read_until)
        self.added = commit_events(changes, positions)
        self.replay(self.added, positions, partition, samples)
        self._complete(positions, partition, samples)
        if is_first:
            moved = select(snapshot, _MOVED)
            at = row_numbers(moved, positions)
            self.moved_at_ms[at[at >= 0]] = milliseconds(moved["moved_at"])[at >= 0]
        self._read_until = snapshot.batch.batch_id

    def replay(self, commits: CommitEvents, positions: pa.Table, partition: Int64s, samples: SampleColumns) -> None:
        """Add commits of `positions` that the caller has read."""
        self._adopt(positions)
        row, offset, at = commits
        self._apply(_Events(row, offset, at, _lags(offset, log_ends_at(samples, partition[row], at))))

    def _adopt(self, positions: pa.Table) -> None:
        """Bring the windows into the order of new rows."""
        keys = positions.select(KEY)
        if self._keys is not None and keys.equals(self._keys):
            return
        before, offset, at, lag, moved = self._keys, self._offset, self._at, self._lag, self.moved_at_ms
        self._set_empty(positions.num_rows)
        self._keys = keys
        if before is None:
            return
        found = row_numbers(keys, before)
        known = found >= 0
        self._offset[known], self._at[known], self._lag[known] = offset[found[known]], at[found[known]], lag[found[known]]
        self.moved_at_ms[known] = moved[found[known]]

    def _complete(self, positions: pa.Table, partition: Int64s, samples: SampleColumns) -> None:
        """Windows without the present commit, such as those of partitions that have no history any more."""
        offset = integers(positions["committed_offset"])
        row = np.flatnonzero(self._offset[:, -1] != offset)
        self._offset[row], self._lag[row], self.moved_at_ms[row] = NONE, NONE, NONE
        row = row[offset[row] != NONE]
        at = milliseconds(positions["commit_timestamp"])[row]
        at = np.where(at == NONE, np.maximum(milliseconds(positions["record_timestamp"])[row], 0), at)
        self._apply(_Events(row, offset[row], at, _lags(offset[row], log_ends_at(samples, partition[row], at))))

    def _apply(self, events: _Events) -> None:
        """Apply events that are sorted by row and time: in each step at most one per row."""
        if not len(events.row):
            return
        rank = ranks_in_runs(events.row)
        for step in range(int(rank.max()) + 1):
            self._apply_step(_Events(*(column[rank == step] for column in events)))

    def _apply_step(self, events: _Events) -> None:
        removed = events.row[events.offset == NONE]
        self._offset[removed], self._lag[removed], self.moved_at_ms[removed] = NONE, NONE, NONE
        row, offset, at, lag = (column[events.offset != NONE] for column in events)
        last = self._offset[row, -1]
        self.moved_at_ms[row] = np.where(last == offset, self.moved_at_ms[row], at)
        near = (last != NONE) & (at - self._at[row, -1] < self._settings.min_distance_ms)
        for column in (self._offset, self._at, self._lag):
            moved = row[~near]
            column[moved, :-1] = column[moved, 1:]
        self._offset[row, -1], self._lag[row, -1] = offset, lag
        self._at[row[~near], -1] = at[~near]

    def columns(self, partition: Int64s, samples: SampleColumns, now_ms: int) -> WindowColumns:
        """The windows at `now_ms`. Rows without a known log end have NONE as current lag."""
        last_at = self._at[:, -1:]
        recent = self._at >= np.minimum(now_ms - self._settings.window_ms, last_at)
        offset = np.where(recent, self._offset, NONE)
        end = log_ends_at(samples, partition, np.full(len(partition), now_ms))
        least = _least_ends(samples, now_ms - self._settings.recent_ends_ms)
        return WindowColumns(
            offset,
            self._at,
            np.where(recent, self._lag, NONE),
            _lags(offset[:, -1], end),
            np.append(least, NONE)[partition],
        )


def log_ends_at(samples: SampleColumns, partition: Int64s, at_ms: Int64s) -> Int64s:
    """The log end in the newest successful sample of each partition until each time; NONE for none."""
    low, high = _bounds(samples, partition)
    if not len(low) or not len(samples.log_end):
        return np.full(len(low), NONE)
    before = _last_until(samples, low - 1, high - 1, at_ms)
    successful = samples.log_end != NONE
    if not successful.all():
        last_successful = np.maximum.accumulate(np.where(successful, np.arange(len(successful)), -1))
        before = np.where(before >= low, last_successful[before], before)
    return np.where(before >= low, samples.log_end[before], NONE)


def _bounds(samples: SampleColumns, partition: Int64s) -> tuple[Int64s, Int64s]:
    starts = np.append(samples.starts, samples.starts[-1])
    return starts[partition], np.where(partition < 0, starts[partition], starts[partition + 1])


def _last_until(samples: SampleColumns, low: Int64s, high: Int64s, at_ms: Int64s) -> Int64s:
    """The last row until `at_ms` in (`low`, `high`]; `low` if there is none. All searches take their steps together."""
    for _ in range(int((high - low).max()).bit_length()):
        middle = (low + high + 1) >> 1
        until = (low < high) & (samples.answered_at_ms[middle] <= at_ms)
        high = np.where(until | (low >= high), high, middle - 1)
        low = np.where(until, middle, low)
    return low


def _least_ends(samples: SampleColumns, since_ms: int) -> Int64s:
    """The least log end of each partition since a time, the newest one at least; NONE if there is none at all."""
    number = np.arange(len(samples.starts) - 1)
    low, high = _bounds(samples, number)
    if not len(number):
        return np.zeros(0, np.int64)
    newest = log_ends_at(samples, number, np.full(len(number), np.iinfo(np.int64).max))
    first = _last_until(samples, low - 1, high - 1, np.full(len(number), since_ms - 1)) + 1
    least = newest
    for step in range(int((high - first).max(initial=0))):
        at = np.minimum(first + step, high - 1)
        end = samples.log_end[at]
        least = np.where((first + step < high) & (end != NONE), np.minimum(least, end), least)
    return least


def _lags(offset: Int64s, end: Int64s) -> Int64s:
    known = (offset != NONE) & (end != NONE)
    return np.where(known, np.maximum(0, difference(np.where(known, end, 0), np.where(known, offset, 0))), NONE)
