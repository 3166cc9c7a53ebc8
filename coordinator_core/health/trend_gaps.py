"""Gaps in the trends of groups that fell behind before them. Times in ms."""

from typing import NamedTuple

import numpy as np

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.health.sampled_ends import SampledEnds
from coordinator_core.health.status import StatusSettings
from coordinator_core.health.trend_limits import DISTANCES, LEAST_MS, POINTS
from coordinator_core.health.trend_points import PointColumns, TrendColumns


class GapEnds(NamedTuple):
    """A point of each row."""

    at_ms: Int64s
    offset: Int64s
    log_end: Numbers

    @property
    def lag(self) -> Numbers:
        return np.maximum(0.0, self.log_end - self.offset)

    def take(self, rows: Numbers) -> "GapEnds":
        return GapEnds(self.at_ms[rows], self.offset[rows], self.log_end[rows])


class TrendGaps(NamedTuple):
    """The last point before the gap of each row, and the newest one; `committed_ms` is the time of the newest commit.

    A newest commit within the gap counts at the first sample after it. A position that went back meanwhile has no row.
    """

    row: Int64s
    committed_ms: Int64s
    before: GapEnds
    newest: GapEnds

    @classmethod
    def of(
        cls,
        points: PointColumns,
        known: Numbers,
        count: Int64s,
        rows: Int64s,
        ends: SampledEnds,
        partition: Int64s,
        settings: StatusSettings,
    ) -> "TrendGaps":
        """Those of the rows `rows` that have a gap, after which the points do not fill a window."""
        first = POINTS - np.maximum(1, count[rows])
        earlier = known[rows] & (np.arange(POINTS) < first[:, None])
        last = POINTS - 1 - earlier[:, ::-1].argmax(axis=1)
        committed = points.at_ms[rows, -1]
        has_gap = earlier.any(axis=1) & (committed - points.at_ms[rows, first] < settings.falls_behind_ms)
        has_gap &= points.offset[rows, last] <= points.offset[rows, first]
        rows, last, committed = rows[has_gap], last[has_gap], committed[has_gap]
        newest = GapEnds(committed.copy(), points.offset[rows, -1], points.log_end[rows, -1].copy())
        in_gap = np.flatnonzero(count[rows] == 0)
        newest.at_ms[in_gap], newest.log_end[in_gap] = ends.since(partition[rows[in_gap]], committed[in_gap])
        before = GapEnds(points.at_ms[rows, last], points.offset[rows, last], points.log_end[rows, last])
        return cls(rows, committed, before, newest)

    def grew(self, now_ms: Int64s, settings: StatusSettings) -> "TrendGaps":
        """Those in which lag grew by a share of the traffic, and after which the group still commits."""
        total, produced = self.newest.lag - self.before.lag, self.newest.log_end - self.before.log_end
        grew = (total > 0) & (total >= settings.falls_behind_share * produced)
        grew &= (now_ms[self.row] - self.committed_ms) * DISTANCES <= settings.falls_behind_ms
        return TrendGaps(self.row[grew], self.committed_ms[grew], self.before.take(grew), self.newest.take(grew))

    def set_trends(self, found: TrendColumns, is_still: Numbers) -> None:
        """Set the trends from before the gaps to now, but for positions that are still."""
        seconds = (self.newest.at_ms - self.before.at_ms) / 1000
        moves = ~is_still[self.row] & (seconds * 1000 >= LEAST_MS)
        rows, seconds, before, newest = self.row[moves], seconds[moves], self.before.take(moves), self.newest.take(moves)
        slope = (newest.lag - before.lag) / seconds
        found.slope[rows] = np.where(np.abs(slope * seconds) >= 1, slope, 0.0)
        found.window_seconds[rows] = seconds
        found.produce_rate[rows] = np.maximum(0.0, (newest.log_end - before.log_end) / seconds)
        found.consume_rate[rows] = (newest.offset - before.offset) / seconds
