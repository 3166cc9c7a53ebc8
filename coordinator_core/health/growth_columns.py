"""Sustained growth of lag in the trends of many rows, in numpy. Times in ms.

Growth counts for a partition by itself, and for the sum of a topic's partitions: many slow partitions show what none of them
shows alone. It is sustained if lag grew along a line, by more than chance and by a share of the traffic that is not a burst.
"""

import numpy as np

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.codec.runs import begins_run
from coordinator_core.health.sample_columns import NONE
from coordinator_core.health.sampled_ends import SampledEnds
from coordinator_core.health.status import StatusSettings
from coordinator_core.health.trend_limits import CHANCE, DISTANCES, EARLIER, LARGEST_BEND, LEAST_PART, PARTS, POINTS, WINDOWS
from coordinator_core.health.trend_points import GrowthStarts, PointColumns


class GrowthColumns:
    """Growth of the rows `rows` in each window."""

    def __init__(
        self,
        points: PointColumns,
        lag: Numbers,
        count: Int64s,
        rows: Int64s,
        now_ms: Int64s,
        settings: StatusSettings,
        ends: SampledEnds,
        partition: Int64s,
    ) -> None:
        self._ends, self._partition = ends, partition[rows]
        self._settings, self._rows, self._count = settings, rows, count[rows]
        self._at, self._lag = points.at_ms[rows], lag[rows]
        self._offset, self._end = points.offset[rows], points.log_end[rows]
        self._newest, self._now = self._at[:, -1], now_ms[rows]
        self._first = POINTS - self._count

    def starts(self, topic_starts: Int64s, before: GrowthStarts) -> GrowthStarts:
        """Since when each of the rows falls behind."""
        found, before = GrowthStarts.none(len(self._rows)), before.take(self._rows)
        topic = np.searchsorted(topic_starts, self._rows, side="right") - 1
        for times in WINDOWS:
            window_ms = self._settings.falls_behind_ms * times
            known, lag, end = self._filled(window_ms)
            if not len(known):
                continue
            first = begins_run(topic[known])
            bounds, of_topic = np.flatnonzero(first), np.cumsum(first) - 1
            whole = _sums(lag, bounds), _sums(end, bounds)
            grows, whole_grows = self._grows(lag, end), self._grows(*whole)
            rate = _peak_rate(end, window_ms)
            earlier, asked = rate.copy(), np.flatnonzero(grows | whole_grows[of_topic])
            earlier[asked] = self._earlier_rate(known[asked], window_ms, end[asked, 0], rate[asked])
            limit = self._settings.falls_behind_burst
            alone = grows & (rate <= limit * earlier)
            together = whole_grows & (_peak_rate(whole[1], window_ms) <= limit * _sums(earlier, bounds))
            total, produced = lag[:, -1] - lag[:, 0], end[:, -1] - end[:, 0]
            takes_part = together[of_topic] & (total > 0) & (total >= self._settings.falls_behind_share * produced)
            falls = known[takes_part | alone]
            found.set(falls, self._start(falls, window_ms, total[takes_part | alone] / window_ms))
            if times == 1:
                held = known[(total > 0) & (before.at_ms[known] != NONE)]
                found.set(held, before.take(held))
        # flat lag that an earlier sample has shown before the start is not among the points any more
        stays = (before.at_ms <= found.at_ms) | (found.is_latest & ~before.is_latest)
        kept = np.flatnonzero((found.at_ms != NONE) & (before.at_ms != NONE) & stays)
        found.set(kept, before.take(kept))
        return found

    def _start(self, rows: Int64s, window_ms: int, rate: Numbers) -> GrowthStarts:
        """When growth began that a window shows: lag grew at nearly its rate per ms from point to point since then.

        Between the first two of them the lag may have been flat for a while: it began where the line of the later ones leaves the
        first. Without a point before them that shows flat lag, it may have begun earlier.
        """
        at, lag, each = self._at[rows], self._lag[rows], np.arange(len(rows))
        grew = np.diff(lag, axis=1) >= LEAST_PART * rate[:, None] * np.diff(at, axis=1)
        grew &= np.arange(1, POINTS) > self._first[rows, None]
        latest = self._newest[rows] - window_ms + window_ms // PARTS
        first = np.maximum((at < latest[:, None]).sum(axis=1), self._first[rows])
        for number in range(POINTS - 1, 0, -1):
            first = np.where((first == number) & grew[:, number - 1], number - 1, first)
        second = np.minimum(first + 1, POINTS - 1)
        rise, later = np.maximum(0.0, lag[each, second] - lag[each, first]), lag[:, -1] - lag[each, second]
        later_rate = later / np.maximum(at[:, -1] - at[each, second], 1)
        begin = at[each, second] - np.floor(rise / np.maximum(rate, later_rate)).astype(np.int64)
        return GrowthStarts(np.maximum(at[each, first], begin), first == self._first[rows])

    def _filled(self, window_ms: int) -> tuple[Int64s, Numbers, Numbers]:
        """Rows whose points fill the window and moved in each part: their numbers, lag and log end at the bounds of the parts.

        Points in the window are at most half of it apart.
        """
        every = np.arange(len(self._rows))
        first_at = self._at[every, self._first]
        rows = np.flatnonzero((self._newest - first_at >= window_ms) & ((self._now - self._newest) * DISTANCES <= window_ms))
        at, newest = self._at[rows], self._newest[rows]
        inside = (at[:, 1:] > (newest - window_ms)[:, None]) & (np.diff(at, axis=1) * DISTANCES > window_ms)
        rows = rows[~inside.any(axis=1)]
        at, newest = self._at[rows], self._newest[rows]
        first = self._first[rows]
        valid = np.arange(POINTS) >= first[:, None]
        read, lag, end = (np.empty((len(rows), PARTS + 1)) for _ in range(3))
        each = np.arange(len(rows))
        for part in range(PARTS + 1):
            bound = newest - window_ms + window_ms * part // PARTS
            after = np.minimum(first + (valid & (at <= bound[:, None])).sum(axis=1), POINTS - 1)
            share = (bound - at[each, after - 1]) / (at[each, after] - at[each, after - 1])
            for values, column in ((read, self._offset), (lag, self._lag), (end, self._end)):
                low, high = column[rows, after - 1], column[rows, after]
                values[:, part] = low + (high - low) * share
        moved = (np.diff(read, axis=1) > 0).all(axis=1)
        return rows[moved], lag[moved], end[moved]

    def _earlier_rate(self, rows: Int64s, window_ms: int, end: Numbers, rate: Numbers) -> Numbers:
        """The produce rate per ms before the window; `rate` where less than `trend_gap_ms` of it is known.

        It is the second lowest rate of the parts of that time, so that a burst in it does not count.
        """
        if not len(rows):
            return rate
        ends, partition, until = self._ends, self._partition[rows], self._newest[rows] - window_ms
        from_ms, from_end = ends.since(partition, until - EARLIER * self._settings.falls_behind_ms)
        span = until - from_ms
        times = np.stack([*(from_ms + span * part // PARTS for part in range(PARTS)), until], axis=1)
        values = np.empty((len(rows), PARTS + 1))
        values[:, 0], values[:, -1] = from_end, end
        for part in range(1, PARTS):
            values[:, part] = ends.at(partition, times[:, part]).log_end
        rates = np.diff(values, axis=1) / np.maximum(np.diff(times, axis=1), 1)
        whole = (end - from_end) / np.maximum(span, 1)
        earlier = np.where(np.isnan(values).any(axis=1), whole, np.sort(rates, axis=1)[:, 1])
        return np.where(span >= self._settings.trend_gap_ms, earlier, rate)

    def _grows(self, lag: Numbers, end: Numbers) -> Numbers:
        """Rows whose lag grew along a line, by more than chance and by a share of the traffic."""
        total, produced = lag[:, -1] - lag[:, 0], end[:, -1] - end[:, 0]
        enough = (total > 0) & (total >= self._settings.falls_behind_share * produced)
        enough &= total >= CHANCE * np.sqrt(np.maximum(0.0, produced))
        line = lag[:, :1] + total[:, None] * np.arange(PARTS + 1) / PARTS
        bends = np.abs(lag - line).max(axis=1)
        parts = np.diff(lag, axis=1).min(axis=1)
        found: Numbers = enough & (parts * PARTS >= LEAST_PART * total) & (bends <= LARGEST_BEND * total)
        return found


def _peak_rate(end: Numbers, window_ms: int) -> Numbers:
    rate: Numbers = np.diff(end, axis=1).max(axis=1) * PARTS / window_ms
    return rate


def _sums(values: Numbers, starts: Int64s) -> Numbers:
    sums: Numbers = np.add.reduceat(values, starts, axis=0)
    return sums
