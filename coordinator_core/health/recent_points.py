"""Points of the trend of many partitions, kept from sample to sample. Times in ms.

A **point** is the last commit of a minute, with the log end at its own time: so the distance of commits and the distance of
samples leave no sawtooth, and the lag of a consumer that keeps up is flat.
"""

import numpy as np

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.codec.runs import ends_run, starts_of_runs
from coordinator_core.health.sample_columns import NONE
from coordinator_core.health.sampled_ends import SampledEnds
from coordinator_core.health.trend_limits import POINT_MS, POINTS
from coordinator_core.health.trend_points import PointColumns


class RecentPoints:
    """The last commits of the last minutes of each row, and the log ends at their times."""

    def __init__(self, rows: int) -> None:
        self.columns = PointColumns.empty(rows)
        #: Points whose log end no further sample changes.
        self._is_final: Numbers = np.zeros((rows, POINTS), np.bool_)

    def add(self, row: Int64s, at_ms: Int64s, offset: Int64s) -> None:
        """Add commits, sorted by row and in the order of the log; offset NONE removes the points of a row."""
        if not len(row):
            return
        removed = np.flatnonzero(offset == NONE)
        if len(removed):
            self.forget(np.unique(row[removed]))
            last_removal = np.full(int(row.max()) + 1, -1)
            last_removal[row[removed]] = removed
            kept = np.arange(len(row)) > last_removal[row]
            row, at_ms, offset = row[kept], at_ms[kept], offset[kept]
            if not len(row):
                return
        last = np.where(self.columns.offset[row, -1] == NONE, 0, self.columns.at_ms[row, -1])
        at_ms = _rising(row, np.maximum(at_ms, last))
        bucket = at_ms // POINT_MS
        is_last = ends_run(row, bucket)
        row, at_ms, offset = row[is_last], at_ms[is_last], offset[is_last]
        starts = starts_of_runs(row)
        sizes = np.diff(starts)
        # those beyond the newest ones would only pass through
        rank = np.arange(len(row)) - np.repeat(starts[:-1] + np.maximum(sizes - POINTS, 0), sizes)
        for step in range(min(int(sizes.max()), POINTS)):
            now = rank == step
            self._add_one(row[now], at_ms[now], offset[now])

    def _add_one(self, row: Int64s, at_ms: Int64s, offset: Int64s) -> None:
        """Add at most one commit per row."""
        points = self.columns
        same = (points.offset[row, -1] != NONE) & (points.at_ms[row, -1] // POINT_MS == at_ms // POINT_MS)
        moved = row[~same]
        for column in (points.at_ms, points.offset, points.log_end, self._is_final):
            column[moved, :-1] = column[moved, 1:]
        points.at_ms[row, -1], points.offset[row, -1] = at_ms, offset
        points.log_end[row, -1], self._is_final[row, -1] = np.nan, False

    def forget(self, rows: Int64s) -> None:
        """Remove the points of rows."""
        self.columns.offset[rows], self.columns.log_end[rows], self.columns.at_ms[rows] = NONE, np.nan, 0
        self._is_final[rows] = False

    def set_log_ends(self, ends: SampledEnds, partition: Int64s) -> None:
        """Set the log ends of points that have none yet, or that a new sample may have changed."""
        row, column = np.nonzero(~self._is_final & (self.columns.offset != NONE))
        if len(row):
            found = ends.at(partition[row], self.columns.at_ms[row, column])
            self.columns.log_end[row, column], self._is_final[row, column] = found

    def adopt(self, other: "RecentPoints", row: Int64s, from_row: Int64s) -> None:
        """Copy the points of rows of another object."""
        mine, theirs = self.columns, other.columns
        mine.at_ms[row], mine.offset[row], mine.log_end[row] = (
            theirs.at_ms[from_row],
            theirs.offset[from_row],
            theirs.log_end[from_row],
        )
        self._is_final[row] = other._is_final[from_row]


def _rising(row: Int64s, at_ms: Int64s) -> Int64s:
    """The greatest time of each row so far. Times are below 2**42 ms and rows below 2**21."""
    if len(at_ms) < 2 or ((row[1:] != row[:-1]) | (at_ms[1:] >= at_ms[:-1])).all():
        return at_ms
    base = row << 42
    rising: Int64s = np.maximum.accumulate(base + at_ms) - base
    return rising
