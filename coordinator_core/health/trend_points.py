"""Points and trends of many groups and partitions, as columns. Times in ms.

The points of a row are right-aligned in `POINTS` columns: the newest is in the last one, and missing ones have the offset NONE.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

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


class GrowthStarts(NamedTuple):
    """When the lag of each row began to grow; NONE if it does not.

    With `is_latest` it grew in all that is known before, so that it began then or earlier.
    """

    at_ms: Int64s
    is_latest: Numbers

    @classmethod
    def none(cls, rows: int) -> Self:
        """Rows without growth."""
        return cls(np.full(rows, NONE), np.zeros(rows, np.bool_))

    def take(self, rows: Int64s) -> "GrowthStarts":
        """These rows."""
        return GrowthStarts(self.at_ms[rows], self.is_latest[rows])

    def set(self, rows: Int64s, other: "GrowthStarts") -> None:
        """Replace the rows `rows` by those of `other`."""
        self.at_ms[rows], self.is_latest[rows] = other


@dataclass(frozen=True, slots=True)
class TrendColumns:
    """The trend of each row: the length of its window, the rates in it, and since when the group falls behind.

    `slope` is the median of the slopes between points half a window and at least PAIR_MS apart, in records per second. The rates
    are those of the log end and of the committed offset over the whole window. NaN throughout for rows without a trend.
    `falls_behind` has the start of the growth.
    """

    slope: Numbers
    window_seconds: Numbers
    produce_rate: Numbers
    consume_rate: Numbers
    falls_behind: GrowthStarts

    @classmethod
    def unknown(cls, rows: int) -> Self:
        """Rows without trends."""
        slope, window, produced, consumed = (np.full(rows, np.nan) for _ in range(4))
        return cls(slope, window, produced, consumed, GrowthStarts.none(rows))

    def take(self, rows: Int64s) -> "TrendColumns":
        """These rows."""
        return TrendColumns(
            self.slope[rows],
            self.window_seconds[rows],
            self.produce_rate[rows],
            self.consume_rate[rows],
            self.falls_behind.take(rows),
        )
