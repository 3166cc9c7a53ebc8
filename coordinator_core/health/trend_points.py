"""Points and trends of many groups and partitions, as columns. Times in ms.

The points of a row are right-aligned in `POINTS` columns: the newest is in the last one, and missing ones have the offset NONE.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.health.sample_columns import NONE
from coordinator_core.health.trend_limits import POINTS


@dataclass(frozen=True, slots=True)
class PointColumns:
    """Time, offset and log end of each point: one row per group and partition. An unknown log end is NaN."""

    at_ms: Int64s
    offset: Int64s
    log_end: Numbers

    @classmethod
    def empty(cls, rows: int) -> Self:
        """Rows without points."""
        shape = (rows, POINTS)
        return cls(np.zeros(shape, np.int64), np.full(shape, NONE), np.full(shape, np.nan))


@dataclass(frozen=True, slots=True)
class TrendColumns:
    """The trend of each row: the length of its window, the rates in it, and since when the group falls behind.

    `slope` is the median of the slopes between points half a window and at least PAIR_MS apart, in records per second. The rates
    are those of the log end and of the committed offset over the whole window. NaN throughout for rows without a trend;
    `falls_behind_since_ms` is NONE for a group that does not fall behind.
    """

    slope: Numbers
    window_seconds: Numbers
    produce_rate: Numbers
    consume_rate: Numbers
    falls_behind_since_ms: Int64s

    @classmethod
    def unknown(cls, rows: int) -> Self:
        """Rows without trends."""
        slope, window, produced, consumed = (np.full(rows, np.nan) for _ in range(4))
        return cls(slope, window, produced, consumed, np.full(rows, NONE))

    def take(self, rows: Int64s) -> "TrendColumns":
        """These rows."""
        return TrendColumns(
            self.slope[rows],
            self.window_seconds[rows],
            self.produce_rate[rows],
            self.consume_rate[rows],
            self.falls_behind_since_ms[rows],
        )
