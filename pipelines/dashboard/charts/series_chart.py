"""A series of numbers over time as an area, with its axis: a rate, or a column of a query."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pipelines.dashboard.charts.area import Area, Scale, area, round_top
from pipelines.dashboard.charts.readings import readings
from pipelines.dashboard.charts.time_axis import Tick, TimeAxis

WIDTH = 1160
_LEFT, _RIGHT = 132, WIDTH - 8
_TOP, _BELOW = 8.0, 24

Points = Sequence[tuple[datetime, float | None]]


@dataclass(frozen=True)
class SeriesChart:
    """The area between `top` and `bottom`, in a coordinate system of `width` × `height`. `values` is what `readings` returns."""

    start: datetime
    end: datetime
    width: int
    height: float
    left: float
    right: float
    top: float
    bottom: float
    chart: Area
    ticks: list[Tick]
    values: str


def series_chart(
    points: Points, start: datetime, end: datetime, words: Callable[[float], str], *, height: float, is_stepped: bool = False
) -> SeriesChart:
    """The values in the order of time, None for a gap, with the text of each by `words`. Values below 0 are drawn at 0.

    `is_stepped`: each value holds until the next point. `height` is that of the area.
    """
    axis, bottom = TimeAxis(start, end, _LEFT, _RIGHT), _TOP + height
    scale = Scale(round_top(value for _, value in points if value is not None), _TOP, bottom)
    texts = ((at, None if value is None else words(value)) for at, value in points)
    drawn = area(points, axis, scale, is_stepped=is_stepped)
    return SeriesChart(
        start, end, WIDTH, bottom + _BELOW, _LEFT, _RIGHT, _TOP, bottom, drawn, axis.ticks(), readings(texts, axis)
    )
