"""Many small area charts with one scale, in a grid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pipelines.dashboard.charts.area import Area, Scale, area, round_top
from pipelines.dashboard.charts.time_axis import TimeAxis

WIDTH = 1160
_COLUMNS = 10
_LABEL, _PANEL, _BETWEEN = 16.0, 36.0, 12.0
_GAP = 16.0


@dataclass(frozen=True)
class SmallPanel:
    """The chart of one key, whose upper left corner is at `x` and `y`."""

    key: int
    x: float
    y: float
    width: float
    bottom: float
    chart: Area


@dataclass(frozen=True)
class SmallMultiples:
    """Panels in a coordinate system of `width` × `height`; `top` is the value at the upper edge of each."""

    width: int
    height: float
    top: float
    panels: tuple[SmallPanel, ...]


def small_multiples(
    series: Mapping[int, Sequence[tuple[datetime, float | None]]], start: datetime, end: datetime
) -> SmallMultiples:
    """A panel per key. Each value holds until the next point."""
    top = round_top(value for points in series.values() for _, value in points if value is not None)
    width = round((WIDTH + _GAP) / _COLUMNS - _GAP, 1)
    pitch = _LABEL + _PANEL + _BETWEEN
    panels = []
    for number, (key, points) in enumerate(series.items()):
        x, y = round(number % _COLUMNS * (width + _GAP), 1), number // _COLUMNS * pitch
        axis = TimeAxis(start, end, x, x + width)
        bottom = y + _LABEL + _PANEL
        panels.append(SmallPanel(key, x, y, width, bottom, area(points, axis, Scale(top, y + _LABEL, bottom), is_stepped=True)))
    rows = -(-len(panels) // _COLUMNS)
    return SmallMultiples(WIDTH, rows * pitch, top, tuple(panels))
