"""What a chart says at a place: the values of a series as texts, for the readout under the pointer."""

from collections.abc import Iterable
from datetime import datetime

from pipelines.dashboard.charts.time_axis import TimeAxis


def readings(points: Iterable[tuple[datetime, str | None]], axis: TimeAxis) -> str:
    """`132.5=25,862 records|140=`: places with the text that holds from there; an empty one begins a gap.

    A point with the text of the one before is left out. Texts are numbers with units, without `|`.
    """
    found: list[tuple[float, str]] = []
    for at, text in points:
        if not found or found[-1][1] != (text or ""):
            found.append((axis.x(at), text or ""))
    return "|".join(f"{x:g}={text}" for x, text in found)
