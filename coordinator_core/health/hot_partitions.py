"""Hot partitions: records are written to a partition at a rate that stands out of its topic's, in numpy. Times in ms.

The partitions of a topic are compared over a window of PARTS equal parts. A rate stands out if it is a multiple of the median,
and above the median by a multiple of the deviations. Both are robust: one hot partition raises neither of them. A partition is
hot if it stands out in the window and in each of its parts, so that a burst does not count.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.codec.runs import starts_of_runs
from coordinator_core.health.sample_columns import NONE, CurrentLogs, SampleColumns
from coordinator_core.health.sampled_ends import SampledEnds
from coordinator_core.health.status import StatusSettings

#: Parts of the window. Samples of a hot partition are at most one part apart, so growth between two of them is in two parts only.
PARTS = 5
#: The median absolute deviation of normally distributed values times this is their standard deviation.
NORMAL = 1.4826
#: Above every number of records of a window; more would not fit into 64 bits with those of other partitions.
_MOST = 2.0**53


class HotPartition(NamedTuple):
    """What the rule compared: records written to the partition and to its topic in the window, and the number of partitions."""

    written: int
    of_topic: int
    partitions: int
    window_ms: int

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.written * 1000 / self.window_ms


@dataclass(frozen=True, slots=True)
class HotColumns:
    """The hot partitions of a sample: their numbers in `SampleColumns`, ascending, and the fields of `HotPartition`."""

    partition: Int64s
    written: Int64s
    of_topic: Int64s
    partitions: Int64s
    window_ms: int

    @classmethod
    def none(cls) -> Self:
        """No hot partitions."""
        empty = np.zeros(0, np.int64)
        return cls(empty, empty, empty, empty, 1)

    def rows_of(self, partition: Int64s) -> Int64s:
        """The row of each partition; -1 for one that is not hot."""
        if not len(self.partition):
            return np.full(len(partition), -1)
        at = np.minimum(np.searchsorted(self.partition, partition), len(self.partition) - 1)
        return np.where(self.partition[at] == partition, at, -1)

    def hot(self, row: int) -> HotPartition:
        """The hot partition of a row."""
        return HotPartition(int(self.written[row]), int(self.of_topic[row]), int(self.partitions[row]), self.window_ms)


def hot_columns(samples: SampleColumns, topic: Int64s, at_ms: int, settings: StatusSettings) -> HotColumns:
    """The hot partitions in the window that ends at `at_ms`. `topic` has the number of the topic of each partition, ascending.

    Compared are the partitions of which the log end is known at the bounds of all parts. So not those that were added during the
    window, those whose newest sample failed or is from before the window and the part before it, and those whose log end moved
    while they were not sampled for longer than a part.
    """
    part_ms = max(1, settings.hot_ms // PARTS)
    if not len(topic):
        return HotColumns.none()
    ends = SampledEnds(CurrentLogs(samples), part_ms)
    newest = samples.newest
    is_recent = samples.answered_at_ms[newest] >= at_ms - part_ms * (PARTS + 1)
    sampled = np.flatnonzero((samples.log_end[newest] != NONE) & is_recent)
    written = _written(ends, sampled, at_ms, part_ms)
    known = ~np.isnan(written).any(axis=1)
    rows, written = sampled[known], written[known]
    starts = starts_of_runs(topic[rows])
    size = np.repeat(np.diff(starts), np.diff(starts))
    of_partition = written.sum(axis=1)
    hot = (size >= settings.hot_partitions) & (of_partition * 1000 >= settings.hot_rate * part_ms * PARTS)
    for values in (of_partition, *written.T) if hot.any() else ():
        hot &= _stands_out(values, starts, settings)
    if not hot.any():
        return HotColumns.none()
    of_topic = np.repeat(np.add.reduceat(of_partition, starts[:-1]), np.diff(starts))
    return HotColumns(rows[hot], _records(of_partition[hot]), _records(of_topic[hot]), size[hot], part_ms * PARTS)


def lags_behind_others(low_seconds: Numbers, high_seconds: Numbers, starts: Int64s, settings: StatusSettings) -> Numbers:
    """Rows whose age is at least `hot_lag_ms`, and a multiple of the median age in their run: the group lags there.

    A run has the partitions of a group and topic and begins at `starts`. `low_seconds` and `high_seconds` are bounds of the ages,
    NaN if unknown: a partition without an upper bound may be as old as any.
    """
    if not len(low_seconds):
        return np.zeros(0, np.bool_)
    median = _medians(np.where(np.isnan(high_seconds), np.inf, high_seconds), starts)
    with np.errstate(invalid="ignore"):
        found: Numbers = (low_seconds * 1000 >= settings.hot_lag_ms) & (low_seconds >= settings.hot_ratio * median)
    return found


def _written(ends: SampledEnds, partition: Int64s, at_ms: int, part_ms: int) -> Numbers:
    """Records that were written to each partition in each part of the window; NaN if unknown."""
    last, found = ends.last_time(partition), np.empty((len(partition), PARTS + 1))
    for number in range(PARTS + 1):
        bound = at_ms - part_ms * (PARTS - number)
        # after the last sample nothing is known to be written
        found[:, number] = ends.at(partition, np.minimum(bound, last)).log_end
    return np.maximum(np.diff(found, axis=1), 0.0)


def _records(values: Numbers) -> Int64s:
    return np.minimum(values, _MOST).round().astype(np.int64)


def _stands_out(values: Numbers, starts: Int64s, settings: StatusSettings) -> Numbers:
    median = _medians(values, starts)
    deviation = NORMAL * _medians(np.abs(values - median), starts)
    found: Numbers = (values > median + settings.hot_deviations * deviation) & (values >= settings.hot_ratio * median)
    return found


def _medians(values: Numbers, starts: Int64s) -> Numbers:
    """The median of the run of each row; runs begin at `starts`, which ends with the number of rows."""
    size = np.diff(starts)
    run = np.repeat(np.arange(len(size)), size)
    ordered = values[np.lexsort((values, run))]
    low, high = starts[:-1] + (size - 1) // 2, starts[:-1] + size // 2
    medians: Numbers = ((ordered[low] + ordered[high]) / 2)[run]
    return medians
