"""Stays of a client over time: a row per group and topic, a bar per interval in which it owned partitions of the topic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.dashboard.charts.time_axis import TimeAxis

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
    """The stays in one group and topic."""

    group: str
    topic: str
    y: float
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
    ticks: list[tuple[float, str]]


def stays_chart(stays: Sequence[Mapping[str, Any]], start: datetime, end: datetime) -> StaysChart:
    """Bars of rows of `consumption_edges`, coloured by client id and host in the order of their first appearance."""
    axis = TimeAxis(start, end, _LEFT, _RIGHT)
    by_topic: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for stay in stays:
        by_topic.setdefault((stay["group_id"], stay["topic"] or stay["topic_id"]), []).append(stay)
    colours: dict[tuple[str, str], int] = {}
    rows = []
    for number, ((group, topic), found) in enumerate(list(by_topic.items())[:MOST_STAYS_ROWS]):
        bars = tuple(_bar(stay, axis, colours) for stay in found)
        rows.append(StaysRow(group, topic, _TOP + number * _ROW, bars))
    bottom = _TOP + len(rows) * _ROW + 4
    return StaysChart(
        WIDTH, bottom + 24, _LEFT, _RIGHT, bottom, _ROW, tuple(rows), len(by_topic) - len(rows), axis.ticks()
    )


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
