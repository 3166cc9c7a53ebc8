"""Trends of all positions, from sample to sample. Times in ms.

The first sample of a process reads the commits since the last window of the process before from `offset_history`. So a trend
spans restarts, and a group that fell behind before a time without a job is known to go on, or not to.
"""

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import Int64s
from coordinator_core.health import (
    NONE,
    GrowthStarts,
    RecentPoints,
    SampleColumns,
    SampledEnds,
    StatusSettings,
    TrendColumns,
    trend_columns,
)
from coordinator_core.health.sample_columns import CurrentLogs, integers
from coordinator_core.health.trend_limits import POINTS
from pipelines.lag.columns import KEY, milliseconds, row_numbers, select, starts_of_runs
from pipelines.lag.tables.commit_windows import HISTORY_COLUMNS, CommitEvents, commit_events
from pipelines.lag.tables.offset_changes import COMMITTED_AT
from pipelines.query.engine import Snapshot
from pipelines.query.histories import IS_CHANGE
from pipelines.runtime.timestamps import at_ms as timestamp
from pipelines.tables.store import timestamp_literal

#: The last commit of each minute, and removals.
_RECENT = """
SELECT group_id, topic, partition, change, committed_offset, previous_offset, min_offset, committed_at, batch_id
FROM (
  SELECT {columns},
         row_number() OVER (
           PARTITION BY group_id, topic, partition, date_trunc('minute', {committed_at}) ORDER BY batch_id DESC
         ) AS place
  FROM offset_history WHERE {is_change} AND {committed_at} >= {since}
) h
WHERE place = 1 OR change NOT IN ('commit', 'rewind')
"""


def trends_of(
    points: RecentPoints,
    positions: pa.Table,
    partition: Int64s,
    samples: SampleColumns,
    settings: StatusSettings,
    before: GrowthStarts,
) -> TrendColumns:
    """The trend of each row of `positions` at the newest of its `samples`.

    `partition` has its number in `samples`, `before` since when it fell behind at the sample before.
    """
    ends = SampledEnds(CurrentLogs(samples), settings.trend_gap_ms)
    points.set_log_ends(ends, partition)
    newest = np.append(samples.answered_at_ms[samples.newest], NONE)[partition]
    topics = starts_of_runs(positions["group_id"], positions["topic"])
    return trend_columns(points.columns, ends, partition, newest, topics, settings, before)


class LagTrends:
    """Trends of the rows of the last `columns`, in their order."""

    def __init__(self, settings: StatusSettings) -> None:
        self._settings = settings
        self._keys: pa.Table | None = None
        self._points = RecentPoints(0)
        #: Positions that fell behind at the last sample that succeeded, and its time.
        self._falling = pa.table({name: pa.array([], pa.string()) for name in KEY})
        self._starts = GrowthStarts.none(0)
        self._sampled_ms = 0

    def begin(self, lag: pa.Table) -> None:
        """Continue with the rows of the table `lag` that an earlier process wrote."""
        times = milliseconds(lag["sampled_at"])
        is_latest = lag["falls_behind_since_is_latest"].fill_null(False).to_numpy()
        starts = GrowthStarts(milliseconds(lag["falls_behind_since"]), is_latest)
        self._remember(lag, starts, int(times.max(initial=0)))

    def columns(
        self,
        snapshot: Snapshot,
        positions: pa.Table,
        added: CommitEvents,
        partition: Int64s,
        samples: SampleColumns,
        now_ms: int,
        *,
        is_sampled: bool,
    ) -> TrendColumns:
        """The trends at `now_ms`. `added` are the commits since the sample before; the first sample reads its own.

        Without log ends of now (`is_sampled`), it is not known which positions go on to fall behind: the next sample shows it.
        """
        is_first = self._keys is None
        self._adopt(positions.select(KEY))
        if is_first:
            sampled_ms = min(now_ms, self._sampled_ms) if self._falling.num_rows else now_ms
            since = timestamp_literal(timestamp(max(0, sampled_ms - POINTS * self._settings.trend_gap_ms)))
            parts = {"columns": HISTORY_COLUMNS, "is_change": IS_CHANGE, "committed_at": COMMITTED_AT}
            rows = select(snapshot, _RECENT.format(**parts, since=since))
            added = commit_events(rows, positions)
        self._points.add(added.row, np.minimum(added.at_ms, now_ms), added.offset)
        self._complete(positions, now_ms)
        found = trends_of(self._points, positions, partition, samples, self._settings, self._before(positions))
        if is_sampled:
            self._remember(positions, found.falls_behind, now_ms)
        return found

    def _adopt(self, keys: pa.Table) -> None:
        """Bring the points into the order of new rows."""
        if self._keys is not None and keys.equals(self._keys):
            return
        before, points = self._keys, self._points
        self._keys, self._points = keys, RecentPoints(keys.num_rows)
        if before is not None:
            found = row_numbers(keys, before)
            self._points.adopt(points, np.flatnonzero(found >= 0), found[found >= 0])

    def _complete(self, positions: pa.Table, now_ms: int) -> None:
        """Points without the present commit, such as those of partitions that have no history any more."""
        offset = integers(positions["committed_offset"])
        row = np.flatnonzero(self._points.columns.offset[:, -1] != offset)
        self._points.forget(row)
        row = row[offset[row] != NONE]
        at = milliseconds(positions["commit_timestamp"])[row]
        at = np.where(at == NONE, np.maximum(milliseconds(positions["record_timestamp"])[row], 0), at)
        self._points.add(row, np.minimum(at, now_ms), offset[row])

    def _before(self, positions: pa.Table) -> GrowthStarts:
        """Since when each position fell behind at the sample before."""
        found = GrowthStarts.none(positions.num_rows)
        if self._falling.num_rows:
            numbers = row_numbers(positions, self._falling)
            falls = np.flatnonzero(numbers >= 0)
            found.set(falls, self._starts.take(numbers[falls]))
        return found

    def _remember(self, keys: pa.Table, starts: GrowthStarts, sampled_ms: int) -> None:
        falls = np.flatnonzero(starts.at_ms != NONE)
        self._falling, self._starts = keys.select(KEY).take(pa.array(falls)), starts.take(falls)
        self._sampled_ms = sampled_ms
