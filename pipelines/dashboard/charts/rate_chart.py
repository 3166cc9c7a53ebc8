"""One series over time as an area, with its axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipelines.dashboard.charts.area import Area, Scale, area, round_top
from pipelines.dashboard.charts.readings import readings
from pipelines.dashboard.charts.time_axis import TimeAxis
from pipelines.dashboard.formatting.quantities import pace

WIDTH = 1160
_LEFT, _RIGHT = 132, WIDTH - 8
_TOP, _HEIGHT = 8.0, 88.0


@dataclass(frozen=True)
class RateChart:
    """The area between `top` and `bottom`, in a coordinate system of `width` × `height`."""

    width: int
    height: float
    left: float
    right: float
    top: float
    bottom: float
    chart: Area
    ticks: list[tuple[float, str]]
    values: str


def rate_chart(points: Sequence[tuple[datetime, float | None]], start: datetime, end: datetime) -> RateChart:
    """The values, each of which holds until the next point."""
    axis = TimeAxis(start, end, _LEFT, _RIGHT)
    bottom = _TOP + _HEIGHT
    scale = Scale(round_top(value for _, value in points if value is not None), _TOP, bottom)
    drawn = area(points, axis, scale, is_stepped=True)
    values = readings(((at, None if value is None else pace(value)) for at, value in points), axis)
    return RateChart(WIDTH, bottom + 24, _LEFT, _RIGHT, _TOP, bottom, drawn, axis.ticks(), values)
