"""Log ends of many partitions at any times, from their samples. Times in ms."""

from typing import NamedTuple

import numpy as np

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.health.sample_columns import NONE, CurrentLogs
from coordinator_core.health.trend_limits import PAIR_MS


class EndColumns(NamedTuple):
    """Log ends at times: NaN where unknown. `is_final` where a later sample exists, so that no further one changes the value."""

    log_end: Numbers
    is_final: Numbers


class SampledEnds:
    """Log ends of the current log of each partition, for searches by time; rows name partitions, -1 for none."""

    def __init__(self, logs: CurrentLogs, gap_ms: int) -> None:
        self._first = np.append(logs.first, 0)
        self._stop = np.append(logs.stop, 0)
        self._end = logs.log_end
        self._time = (logs.asked_at_ms + logs.answered_at_ms) >> 1
        self._gap_ms = gap_ms

    def at(self, partition: Int64s, at_ms: Int64s) -> EndColumns:
        """The log end of each partition at a time, linear between two samples.

        NaN before the first sample, and within a gap in which the end moved. After the newest sample the line from the one
        PAIR_MS before it goes on, until the next sample shows the truth: what producers send at once after an outage is no rate.
        """
        if not len(self._end):
            return EndColumns(np.full(len(at_ms), np.nan), np.zeros(len(at_ms), np.bool_))
        first, stop = self._first[partition], self._stop[partition]
        last = self._last_until(first, stop, at_ms)
        is_final = last + 1 < stop
        known = last >= first
        is_last = known & ~is_final
        last = np.where(known, last, 0)
        before = last.copy()
        newest = np.flatnonzero(is_last)
        before[newest] = self._line_before(first[newest], last[newest])
        after = np.where(is_last | ~known, last, last + 1)
        change, distance = self._end[after] - self._end[before], self._time[after] - self._time[before]
        is_flat = (change == 0) | (distance == 0)
        share = (at_ms - self._time[before]) / np.where(distance, distance, 1)
        is_gap = ~is_flat & (distance > self._gap_ms)
        value = np.where(is_flat | (is_gap & is_last), self._end[after], self._end[before] + change * share)
        return EndColumns(np.where(known & (is_last | ~is_gap), value, np.nan), is_final)

    def since(self, partition: Int64s, from_ms: Int64s) -> tuple[Int64s, Numbers]:
        """The log end at each time, or at the first sample after it where it is unknown then, with the time."""
        found = self.at(partition, from_ms).log_end
        unknown = np.flatnonzero(np.isnan(found))
        if not len(unknown) or not len(self._end):
            return from_ms, found
        at_ms = from_ms.copy()
        first, stop = self._first[partition[unknown]], self._stop[partition[unknown]]
        after = np.minimum(self._last_until(first, stop, from_ms[unknown]) + 1, stop - 1)
        has_end = after >= first
        after = np.where(has_end, after, 0)
        at_ms[unknown] = np.where(has_end, self._time[after], from_ms[unknown])
        found[unknown] = np.where(has_end, self._end[after], np.nan)
        return at_ms, found

    def newest(self, partition: Int64s) -> Numbers:
        """The newest log end of each partition; NaN for none."""
        if not len(self._end):
            return np.full(len(partition), np.nan)
        first, stop = self._first[partition], self._stop[partition]
        return np.where(stop > first, self._end[np.maximum(stop - 1, 0)], np.nan)

    def first_time(self, partition: Int64s) -> Int64s:
        """Time of the first sample of each partition's log; NONE without one."""
        if not len(self._end):
            return np.full(len(partition), NONE)
        first, stop = self._first[partition], self._stop[partition]
        return np.where(stop > first, self._time[np.minimum(first, len(self._time) - 1)], NONE)

    def last_time(self, partition: Int64s) -> Int64s:
        """Time of the newest sample of each partition's log; NONE without one."""
        if not len(self._end):
            return np.full(len(partition), NONE)
        first, stop = self._first[partition], self._stop[partition]
        return np.where(stop > first, self._time[np.maximum(stop - 1, 0)], NONE)

    def _line_before(self, first: Int64s, last: Int64s) -> Int64s:
        """The last row at least PAIR_MS before each row `last`; `first` if there is none."""
        return np.maximum(first, self._last_until(first, last, self._time[last] - PAIR_MS))

    def _last_until(self, first: Int64s, stop: Int64s, at_ms: Int64s) -> Int64s:
        """The last row until each time, `first - 1` for none. All searches take their steps together."""
        low, high = first - 1, stop - 1
        # nearly all times are after one of the last samples
        near = np.maximum(stop - 4, first)
        is_near = (near < stop) & (self._time[np.minimum(near, len(self._time) - 1)] <= at_ms)
        low = np.where(is_near, near, low)
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = (low + high + 1) >> 1
            until = (low < high) & (self._time[middle] <= at_ms)
            high = np.where(until | (low >= high), high, middle - 1)
            low = np.where(until, middle, low)
        return low
