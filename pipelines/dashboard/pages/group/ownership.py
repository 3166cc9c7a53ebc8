"""Owners of partitions over time: a row per partition, a bar per stay of a member, and the times without an owner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pipelines.dashboard.charts.time_axis import TimeAxis

#: Colours of members; further members repeat them with a pattern.
COLOURS = 8
#: Rough width of a character of a bar's label.
_CHARACTER = 6.5
_LEAST_WIDTH = 1.0
#: Distance between two bars of a row.
_BETWEEN = 1.0


@dataclass(frozen=True)
class Bar:
    """A stay of a member; `member` is None for a time without an owner."""

    x: float
    width: float
    label: str
    colour: int
    has_pattern: bool
    member: str | None
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True)
class PartitionRow:
    topic: str
    partition: int
    y: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class OwnershipChart:
    """Rows from `top` down; `row_height` includes the distance to the next row."""

    rows: tuple[PartitionRow, ...]
    row_height: float
    bottom: float
    hidden: int


def ownership_chart(
    owners: Sequence[Mapping[str, Any]],
    labels: Mapping[str, tuple[str, int]],
    axis: TimeAxis,
    top: float,
    partitions: Sequence[tuple[str, int]],
) -> OwnershipChart:
    """Bars of the rows of `ownership`. `partitions` are the rows to draw, in their order; others are counted as hidden."""
    by_partition: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for row in owners:
        by_partition.setdefault((row["topic"], row["partition"]), []).append(row)
    height = 20.0 if len(partitions) <= 16 else 14.0 if len(partitions) <= 32 else 9.0
    rows = tuple(
        PartitionRow(topic, partition, top + number * height, _bars(by_partition.get((topic, partition), []), labels, axis))
        for number, (topic, partition) in enumerate(partitions)
    )
    return OwnershipChart(rows, height, top + len(rows) * height, len(by_partition.keys() - set(partitions)))


def _bars(stays: Sequence[Mapping[str, Any]], labels: Mapping[str, tuple[str, int]], axis: TimeAxis) -> tuple[Bar, ...]:
    bars: list[Bar] = []
    free_since: datetime | None = None
    for stay in sorted(stays, key=lambda row: row["since"] or axis.start):
        since, until = stay["since"] or axis.start, stay["until"] or axis.end
        if free_since is not None and since > free_since:
            bars += _free(free_since, since, axis)
        name, colour = labels[stay["member_id"]]
        x, width = _place(since, until, axis)
        label = name if width >= len(name) * _CHARACTER + 8 else ""
        bars.append(Bar(x, width, label, colour % COLOURS, colour >= COLOURS, name, stay["since"], stay["until"]))
        free_since = max(free_since or until, until)
    if free_since is not None and free_since < axis.end:
        bars += _free(free_since, axis.end, axis)
    return tuple(bars)


def _free(since: datetime, until: datetime, axis: TimeAxis) -> list[Bar]:
    """A time without an owner, if it is in the span and wide enough to be seen."""
    if until <= axis.start or since >= axis.end:
        return []
    x, width = _place(since, until, axis)
    is_visible = until - since > timedelta(0) and axis.x(until) - axis.x(since) >= _LEAST_WIDTH
    return [Bar(x, width, "", 0, False, None, since, until)] if is_visible else []


def _place(since: datetime, until: datetime, axis: TimeAxis) -> tuple[float, float]:
    x = axis.x(since)
    return x, round(max(_LEAST_WIDTH, axis.x(until) - x - _BETWEEN), 1)
