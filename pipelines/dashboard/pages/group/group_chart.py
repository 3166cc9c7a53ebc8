"""The chart of a group: lag, age, commits, generations and owners over one axis of time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from pipelines.dashboard.charts.area import Area, Scale, area, round_top, round_top_of_seconds
from pipelines.dashboard.charts.readings import readings
from pipelines.dashboard.charts.time_axis import Tick, TimeAxis
from pipelines.dashboard.formatting.quantities import age, count, pace
from pipelines.dashboard.pages.group.ownership import OwnershipChart, ownership_chart

WIDTH = 1160
_LEFT, _RIGHT = 132, WIDTH - 8
_PANEL, _BETWEEN = 72, 16
#: Partitions that are drawn; a page has the others in its table.
MOST_PARTITIONS = 64
#: Kinds of events that are marked beside rebalances and resets, and their labels.
_LABELS = {"transaction": "T", "transaction_end": "T", "loss": "L", "alert": "A"}


@dataclass(frozen=True)
class Panel:
    """One series: `bottom` is its zero line, `top` its upper edge, `values` what `readings` returns."""

    name: str
    title: str
    top: float
    bottom: float
    chart: Area
    values: str


class Mark(NamedTuple):
    """A vertical line at an event: `label` is beside it, `words` appear when the pointer is on it."""

    x: float
    kind: str
    label: str
    words: str


@dataclass(frozen=True)
class GroupChart:
    """All parts in one coordinate system of `width` × `height`."""

    width: int
    height: float
    left: float
    right: float
    panels: tuple[Panel, ...]
    ticks: list[Tick]
    marks: tuple[Mark, ...]
    generation_y: float
    ownership: OwnershipChart
    axis_y: float


def group_chart(model: Mapping[str, Any]) -> GroupChart:
    """The chart of a model of pages/group.py."""
    axis = TimeAxis(model["span"]["start"], model["span"]["end"], _LEFT, _RIGHT)
    top, panels = 8.0, []
    for name, title, rows, is_stepped in _series(model):
        points = [(at, value) for at, value, _ in rows]
        round_up = round_top_of_seconds if name == "age" else round_top
        scale = Scale(round_up(value for _, value in points if value is not None), top, top + _PANEL)
        drawn = area(points, axis, scale, is_stepped=is_stepped)
        values = readings(((at, text) for at, _, text in rows), axis)
        panels.append(Panel(name, title, top, top + _PANEL, drawn, values))
        top += _PANEL + _BETWEEN
    labels = {member: (each["name"], each["colour"]) for member, each in model["members"].items()}
    partitions = _partitions(model)
    generation_y = top + 10
    ownership = ownership_chart(model["owners"], labels, axis, generation_y + 12, partitions)
    bottom = ownership.bottom + (4 if partitions else 0)
    return GroupChart(
        width=WIDTH,
        height=bottom + 24,
        left=_LEFT,
        right=_RIGHT,
        panels=tuple(panels),
        ticks=axis.ticks(),
        marks=_marks(model, axis),
        generation_y=generation_y,
        ownership=ownership,
        axis_y=bottom,
    )


#: A time with the value that is drawn and the text that is read; None for both begins a gap.
_Point = tuple[datetime, float | None, str | None]


def _series(model: Mapping[str, Any]) -> tuple[tuple[str, str, list[_Point], bool], ...]:
    lag, commits = model["lag_history"], model["commits"]
    return (
        ("lag", "lag", [_point(row, "lag", f"{count(row['lag'])} records") for row in lag], False),
        ("age", "age", [_point(row, "lag_seconds", age(row)) for row in lag], False),
        ("commits", "commits / s", [_point(row, "commits_per_second", pace(row["commits_per_second"])) for row in commits], True),
    )


def _point(row: Mapping[str, Any], value: str, text: str) -> _Point:
    return row["at"], row[value], None if row[value] is None else text


def _marks(model: Mapping[str, Any], axis: TimeAxis) -> tuple[Mark, ...]:
    """Marks of events in the order of time; labels only where the one before leaves room for them."""
    words: dict[tuple[datetime, str], str] = {}
    for event in _single_events(model["events"]):
        at = event["at"], event["kind"]
        words[at] = f"{words[at]}. {event['words']}" if at in words else event["words"]
    generations = {row["recorded_at"]: row["to_generation"] for row in model["rebalances"]}
    events = [(at, "rebalance", "" if number is None else str(number)) for at, number in generations.items()]
    events += [(at, "reset", "R") for at in {row["reset_at"] for row in model["resets"]}]
    events += [(at, kind, _LABELS[kind]) for at, kind in words if kind in _LABELS]
    found: list[Mark] = []
    free_from = 0.0
    for at, kind, label in sorted(events):
        x = axis.x(min(at, model["span"]["end"]))
        is_free = x >= free_from
        free_from = x + 8 + 7 * len(label) if is_free else free_from
        found.append(Mark(x, kind, label if is_free else "", f"{words[at, kind]}." if (at, kind) in words else ""))
    return tuple(found)


def _single_events(events: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The events, with those of a storm one by one."""
    for event in events:
        yield from event.get("events") or (event,)


def _partitions(model: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Partitions with an owner in the span, by name; if there are too many, those with the greatest age."""
    owned = {(row["topic"], row["partition"]) for row in model["owners"] if row["topic"] is not None}
    by_age = [(row["topic"], row["partition"]) for row in model["offsets"] if (row["topic"], row["partition"]) in owned]
    others = sorted(owned.difference(by_age))
    return sorted([*by_age, *others][:MOST_PARTITIONS])
