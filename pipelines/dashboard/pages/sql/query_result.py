"""The result of a query for its page: cells of a table, and series over time where it has a time and a number."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pipelines.dashboard.charts.series_chart import Points, SeriesChart, series_chart
from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.quantities import plural
from pipelines.tables import definitions

Result = Mapping[str, Any]

#: Rows of the table; the JSON has the others.
_MOST_ROWS = 500
#: Charts of a result, and rows that they are drawn from.
_MOST_CHARTS = 6
_CHART_HEIGHT = 64.0
_LONGEST = 200
_TIME, _TEXT = "TIMESTAMP", "STRING"

#: Offered where there is no query yet.
_EXAMPLES = {
    "Groups with the greatest lag": "SELECT group_id, sum(lag) AS lag FROM lag GROUP BY group_id ORDER BY lag DESC LIMIT 20",
    "Lag over the last hour": "SELECT sampled_at, group_id, sum(lag) AS lag FROM lag_history\n"
    "WHERE sampled_at > (SELECT max(sampled_at) FROM lag_history) - INTERVAL '1 hour'\n"
    "GROUP BY sampled_at, group_id ORDER BY sampled_at",
    "Resets of offsets": "SELECT reset_at, group_id, topic, partition, from_offset, to_offset, reset_by\n"
    "FROM resets ORDER BY reset_at DESC LIMIT 20",
    "Rebalances": "SELECT recorded_at, group_id, from_generation, to_generation, trigger, partitions_moved, duration_seconds\n"
    "FROM rebalances ORDER BY recorded_at DESC LIMIT 20",
}


class SeriesOfResult(NamedTuple):
    """A series of the result with its chart."""

    name: str
    summary: str
    chart: SeriesChart


class ResultCell(NamedTuple):
    """A value: `at` if it is a time. None as text is null."""

    text: str | None
    at: datetime | None


def query_view(result: Result | None) -> dict[str, Any]:
    """Names for the template sql.html; `result` is None without a query, or if it failed."""
    if result is None:
        return {
            "result": None,
            "examples": _EXAMPLES,
            "tables": sorted(definitions.WRITE_ORDER),
            "views": sorted(definitions.VIEWS),
        }
    columns, rows = result["columns"], result["rows"]
    shown = rows[:_MOST_ROWS]
    kinds = [each["type"] for each in columns]
    are_numbers = [_is_numeric([row[number] for row in rows]) for number in range(len(columns))]
    return {
        "result": result,
        "are_numbers": are_numbers,
        "cells": [[_cell(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in shown],
        "notes": _notes(result, len(shown)),
        "charts": charts(columns, rows, are_numbers),
    }


def _notes(result: Result, shown: int) -> str:
    rows = len(result["rows"])
    texts = [plural(rows, "row"), f"batch {result['batch_id']}"]
    texts += [f"the table has the first {shown:,}"] if shown < rows else []
    return ", ".join([*texts, *([result["note"]] if result["note"] else [])])


def _cell(value: Any, kind: str) -> ResultCell:
    if value is None:
        return ResultCell(None, None)
    at = _time(value) if kind == _TIME else None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return ResultCell(visible(text, _LONGEST) if at is None else text.removesuffix("Z").replace("T", " "), at)


def _is_numeric(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)


def _time(value: Any) -> datetime | None:
    """The time; None for one that Python does not have."""
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except ValueError:
        return None


def charts(
    columns: Sequence[Mapping[str, str]], rows: Sequence[Sequence[Any]], are_numbers: Sequence[bool]
) -> list[SeriesOfResult]:
    """A chart for each column of numbers, if each time is in one row; otherwise for each value of the first column of texts.

    None without a column of times, or if several rows of a series have one time.
    """
    kinds = [each["type"] for each in columns]
    numbers = [number for number, is_numeric in enumerate(are_numbers) if is_numeric]
    if _TIME not in kinds or not numbers:
        return []
    timed = [(at, row) for row in rows if (at := _time(row[kinds.index(_TIME)] or "")) is not None]
    if len({at for at, _ in timed}) < 2:
        return []
    names = [each["name"] for each in columns]
    if len({at for at, _ in timed}) == len(timed):
        series = {names[number]: [(at, row[number]) for at, row in timed] for number in numbers}
    elif _TEXT in kinds:
        series = {}
        for at, row in timed:
            series.setdefault(visible(row[kinds.index(_TEXT)], 40), []).append((at, row[numbers[0]]))
    else:
        return []
    if any(len({at for at, _ in points}) < len(points) for points in series.values()):
        return []
    start, end = min(at for at, _ in timed), max(at for at, _ in timed)
    return [_series(name, sorted(points), start, end) for name, points in list(series.items())[:_MOST_CHARTS]]


def _series(name: str, points: Points, start: datetime, end: datetime) -> SeriesOfResult:
    known = [value for _, value in points if value is not None]
    summary = f"{len(known):,} values, {_number(min(known))} to {_number(max(known))}" if known else "no values"
    return SeriesOfResult(name, summary, series_chart(points, start, end, _number, height=_CHART_HEIGHT))


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
