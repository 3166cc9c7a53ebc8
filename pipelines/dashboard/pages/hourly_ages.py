"""Ages of several groups as rows of hours, the table of the small charts of the overview."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple


class HourRow(NamedTuple):
    """The greatest age of each group in the hour that begins at `start`; None without a sample."""

    start: datetime
    ages: tuple[float | None, ...]


def hourly_ages(series: Sequence[Sequence[Mapping[str, Any]]]) -> list[HourRow]:
    """One row per hour with a known age in any of the series, the newest first."""
    greatest: list[dict[datetime, float]] = []
    for points in series:
        by_hour: dict[datetime, float] = {}
        for point in points:
            if point["lag_seconds"] is not None:
                hour = point["at"].replace(minute=0, second=0, microsecond=0)
                by_hour[hour] = max(by_hour.get(hour, 0.0), point["lag_seconds"])
        greatest.append(by_hour)
    hours = sorted(set().union(*greatest), reverse=True)
    return [HourRow(hour, tuple(each.get(hour) for each in greatest)) for hour in hours]
