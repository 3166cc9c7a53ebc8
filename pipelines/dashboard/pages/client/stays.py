"""Stays of a client over time: a bar per interval in which it owned partitions of a topic in a group.

Stays in one group and topic at the same time, of several members, are in rows of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.dashboard.charts.time_axis import Tick, TimeAxis

WIDTH = 1160
_LEFT, _RIGHT = 260, WIDTH - 8
_TOP, _ROW = 8.0, 20.0
_CHARACTER = 6.5
_LEAST_WIDTH, _BETWEEN = 1.0, 1.0
#: Colours of hosts and client ids; further ones repeat them with a pattern.
COLOURS = 8
#: Rows that are drawn; the table of a page has all of them.
MOST_STAYS_ROWS = 48


@dataclass(frozen=True)
class StayBar:
    x: float
    width: float
    label: str
    colour: int
    has_pattern: bool


@dataclass(frozen=True)
class StaysRow:
    """Stays in one group and topic, one after the other. Of several such rows the first one has the names."""

    group: str
    topic: str
    y: float
    is_first: bool
    bars: tuple[StayBar, ...]


@dataclass(frozen=True)
class StaysChart:
    """Rows in a coordinate system of `width` × `height`; `hidden` counts those that are left out."""

    width: int
    height: float
    left: float
    right: float
    bottom: float
    row_height: float
    rows: tuple[StaysRow, ...]
    hidden: int
    ticks: list[Tick]


def stays_chart(stays: Sequence[Mapping[str, Any]], start: datetime, end: datetime) -> StaysChart:
    """Bars of rows of `consumption_edges`, coloured by client id and host in the order of their first appearance."""
    axis = TimeAxis(start, end, _LEFT, _RIGHT)
    by_topic: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for stay in stays:
        by_topic.setdefault((stay["group_id"], stay["topic"] or stay["topic_id"]), []).append(stay)
    colours: dict[tuple[str, str], int] = {}
    rows: list[StaysRow] = []
    drawn = 0
    for (group, topic), found in by_topic.items():
        lanes = _lanes(found, axis)
        if len(rows) + len(lanes) > MOST_STAYS_ROWS:
            break
        drawn += 1
        for number, lane in enumerate(lanes):
            bars = tuple(_bar(stay, axis, colours) for stay in lane)
            rows.append(StaysRow(group, topic, _TOP + len(rows) * _ROW, number == 0, bars))
    bottom = _TOP + len(rows) * _ROW + 4
    return StaysChart(WIDTH, bottom + 24, _LEFT, _RIGHT, bottom, _ROW, tuple(rows), len(by_topic) - drawn, axis.ticks())


def _lanes(stays: Sequence[Mapping[str, Any]], axis: TimeAxis) -> list[list[Mapping[str, Any]]]:
    """The stays in as few lists as have no overlaps."""
    lanes: list[list[Mapping[str, Any]]] = []
    for stay in sorted(stays, key=lambda row: (row["since"] or axis.start, row["client_id"], row["client_host"])):
        since = stay["since"] or axis.start
        free = next((lane for lane in lanes if (lane[-1]["until"] or axis.end) <= since), None)
        if free is None:
            lanes.append([stay])
        else:
            free.append(stay)
    return lanes


def _bar(stay: Mapping[str, Any], axis: TimeAxis, colours: dict[tuple[str, str], int]) -> StayBar:
    identity = stay["client_id"], stay["client_host"]
    colour = colours.setdefault(identity, len(colours))
    x = axis.x(stay["since"] or axis.start)
    width = round(max(_LEAST_WIDTH, axis.x(stay["until"] or axis.end) - x - _BETWEEN), 1)
    name = stay_label(stay)
    return StayBar(x, width, name if width >= len(name) * _CHARACTER + 8 else "", colour % COLOURS, colour >= COLOURS)


def stay_label(stay: Mapping[str, Any]) -> str:
    """Client id and host of a stay."""
    return f"{stay['client_id']} {stay['client_host'].lstrip('/')}"
