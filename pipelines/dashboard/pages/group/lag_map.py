"""The lag of partitions over time: a row per partition, in which shade and height of a bar are the power of ten of the lag.

The height says the same as the shade, so that the map can be read without colours.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from pipelines.dashboard.charts.readings import readings
from pipelines.dashboard.charts.time_axis import Tick, TimeAxis
from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.quantities import count, plural, short_count
from pipelines.dashboard.formatting.reasons import partition_name

#: Greatest lag of each shade, from the lightest; a greater lag has the darkest shade.
SHADES = (0, 10, 100, 1_000, 10_000, 100_000)
WIDTH, ROW = 1000, 18
_LEAST_HEIGHT, _HEIGHT_OF_SHADE = 2, 2
#: Rows whose values appear beside the cursor: affected ones, then those with the greatest lag.
_MOST_READ = 6


class LagRun(NamedTuple):
    """Samples of one shade that follow each other; `shade` is None where the lag is unknown. `words` have their lags."""

    x: float
    y: float
    width: float
    height: float
    shade: int | None
    words: str


class LagRow(NamedTuple):
    """A partition: `values` is what `readings` returns, empty in rows that are not read at the cursor."""

    name: str
    is_affected: bool
    bars: tuple[LagRun, ...]
    values: str


@dataclass(frozen=True)
class LagMap:
    """Rows in one coordinate system of `width` × `height`; ticks are the places of round times."""

    width: int
    height: int
    rows: tuple[LagRow, ...]
    ticks: list[Tick]


def lag_map(model: Mapping[str, Any], affected: Set[tuple[str, int]]) -> LagMap:
    """The map of a model of pages/group.py."""
    rows = model["partition_lag"]["rows"]
    axis = TimeAxis(model["span"]["start"], model["span"]["end"], 0, WIDTH)
    places = [(row["topic"], row["partition"]) for row in rows]
    read = sorted(range(len(rows)), key=lambda number: (places[number] not in affected, -(rows[number]["most_lag"] or 0), number))
    return LagMap(
        width=WIDTH,
        height=ROW * len(rows),
        rows=tuple(
            _row(number, row, axis, is_affected=places[number] in affected, is_read=number in read[:_MOST_READ])
            for number, row in enumerate(rows)
        ),
        ticks=axis.ticks(),
    )


def shade(lag: int) -> int:
    """Number of the shade of a lag."""
    return next((number for number, most in enumerate(SHADES) if lag <= most), len(SHADES))


def shade_words() -> list[tuple[int, str]]:
    """Number and meaning of each shade."""
    return list(enumerate(["at the end", *(f"≤ {short_count(most)}" for most in SHADES[1:]), f"> {short_count(SHADES[-1])}"]))


def map_summary(model: Mapping[str, Any]) -> str:
    """One sentence with the numbers of the map."""
    lags = model["partition_lag"]
    greatest = max(lags["rows"], key=lambda row: row["most_lag"] or 0)
    name = visible(partition_name(greatest["topic"], greatest["partition"]), 60)
    text = f"Last {model['span']['text']}: {count(greatest['most_lag'])} records at most, on {name}"
    if lags["hidden"]:
        text += f"; {plural(lags['hidden'], 'more partition')}, behind by at most {count(lags['hidden_lag'])}"
    return f"{text}."


def _row(number: int, row: Mapping[str, Any], axis: TimeAxis, *, is_affected: bool, is_read: bool) -> LagRow:
    name = partition_name(row["topic"], row["partition"])
    bars = []
    for level, same in groupby(row["samples"], lambda each: None if each["lag"] is None else shade(each["lag"])):
        samples = list(same)
        x = axis.x(samples[0]["at"])
        height = ROW - 4 if level is None else _LEAST_HEIGHT + _HEIGHT_OF_SHADE * level
        width = round(axis.x(samples[-1]["until"]) - x, 1)
        words = f"{visible(name, 60)}: {_lags([each['lag'] for each in samples])}"
        bars.append(LagRun(x, (number + 1) * ROW - 2 - height, width, height, level, words))
    points = ((each["at"], None if each["lag"] is None else f"{count(each['lag'])} records") for each in row["samples"])
    return LagRow(name, is_affected, tuple(bars), readings(points, axis) if is_read else "")


def _lags(lags: list[int | None]) -> str:
    known = [lag for lag in lags if lag is not None]
    if not known:
        return "unknown"
    least, most = min(known), max(known)
    return f"{count(most)} records" if least == most else f"{count(least)} to {count(most)} records"
