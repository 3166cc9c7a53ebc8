"""A small area chart without axes, in a row of a table or a tile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pipelines.dashboard.charts.area import Scale, area
from pipelines.dashboard.charts.time_axis import TimeAxis


@dataclass(frozen=True)
class Sparkline:
    """Paths of a line and the area below it in a box of `width` × `height`."""

    width: int
    height: int
    line: str
    fill: str
    end: tuple[float, float] | None


def sparkline(
    points: Sequence[Mapping[str, Any]],
    value: str,
    end: datetime,
    span: timedelta,
    *,
    width: int = 120,
    height: int = 24,
    top: float | None = None,
) -> Sparkline | None:
    """The values of the points; None without any. `top` is the value at the upper edge, by default the greatest one."""
    known = [float(point[value]) for point in points if point[value] is not None]
    if not known:
        return None
    axis = TimeAxis(end - span, end, 0, width - 2)
    scale = Scale(top or max(known) or 1.0, 2, height - 1)
    drawn = area([(point["at"], point[value]) for point in points], axis, scale)
    last = points[-1]
    place = None if last[value] is None else (axis.x(last["at"]), scale.y(last[value]))
    return Sparkline(width, height, drawn.line, drawn.fill, place)
