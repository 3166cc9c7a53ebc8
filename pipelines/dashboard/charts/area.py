"""A value over time as the path of a line and of the area below it, from 0."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from pipelines.dashboard.charts.time_axis import TimeAxis


@dataclass(frozen=True)
class Area:
    """Paths of an area chart. `top` is the value at the upper edge."""

    line: str
    fill: str
    top: float


@dataclass(frozen=True)
class Scale:
    """Values from 0 to `top` as y between `bottom` and `upper`."""

    top: float
    upper: float
    bottom: float

    def y(self, value: float) -> float:
        """The place of a value; values above `top` and below 0 are at the edges."""
        share = min(1.0, max(0.0, value / self.top)) if self.top else 0.0
        return round(self.bottom - share * (self.bottom - self.upper), 1)


def round_top(values: Iterable[float]) -> float:
    """The least of 1, 2, 2.5, 5 × 10ⁿ that is not below any value; 1 for no value above 0."""
    highest = max(values, default=0.0)
    if highest <= 0:
        return 1.0
    power: float = 10.0 ** (len(f"{highest:.0f}") - 1) if highest >= 1 else 10.0 ** -len(f"{1 / highest:.0f}")
    return next(power * factor for factor in (1, 2, 2.5, 5, 10, 20) if power * factor >= highest)


#: Round ends of a scale of seconds.
_ROUND_SECONDS = (
    *(1, 2, 5, 10, 15, 30),
    *(60 * each for each in (1, 2, 5, 10, 15, 30)),
    *(3_600 * each for each in (1, 2, 3, 6, 12)),
    *(86_400 * each for each in (1, 2, 5, 7, 14, 30, 60, 90, 180, 365)),
)


def round_top_of_seconds(values: Iterable[float]) -> float:
    """The least round time that is not below any value."""
    highest = max(values, default=0.0)
    return next((float(each) for each in _ROUND_SECONDS if each >= highest), highest)


def area(points: Sequence[tuple[datetime, float | None]], axis: TimeAxis, scale: Scale, *, is_stepped: bool = False) -> Area:
    """Paths through the points, which are in the order of time; a point without a value is a gap.

    With `is_stepped` a value holds until the next point.
    """
    runs = [list(run) for is_known, run in groupby(points, lambda point: point[1] is not None) if is_known]
    lines, fills = [], []
    for run in runs:
        places = [(axis.x(at), scale.y(value)) for at, value in run if value is not None]
        if is_stepped:
            after = next((at for at, value in points if at > run[-1][0]), axis.end)
            places = _stepped([*places, (axis.x(after), places[-1][1])])
        if len(places) == 1:
            # a single sample is a short line, so that it is seen
            places.append((min(places[0][0] + 1, axis.right), places[0][1]))
        path = "L".join(f"{x:g} {y:g}" for x, y in _without_repeats(places))
        lines.append(f"M{path}")
        fills.append(f"M{places[0][0]:g} {scale.bottom:g}L{path}L{places[-1][0]:g} {scale.bottom:g}Z")
    return Area("".join(lines), "".join(fills), scale.top)


def _stepped(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    found = [places[0]]
    for x, y in places[1:]:
        found += [(x, found[-1][1]), (x, y)]
    return found


def _without_repeats(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without the inner points of horizontal lines, most of a quiet series."""
    kept = []
    for number, place in enumerate(places):
        inner = 0 < number < len(places) - 1
        if not (inner and places[number - 1][1] == place[1] == places[number + 1][1]):
            kept.append(place)
    return kept
