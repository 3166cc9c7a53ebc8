"""Output of query results as an aligned table, JSON lines or CSV. Times are ISO 8601 in UTC, bytes base64."""

import base64
import csv
import json
import math
import sys
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, TextIO

import pyarrow as pa

from pipelines.query.arrow_types import distinct_names
from pipelines.query.python_values import values_of
from pipelines.runtime.terminal_text import mask_of, masked

_WIDEST = 60


def write_json(table: pa.Table, out: TextIO) -> None:
    """Write one JSON object per line."""
    names, mask = distinct_names(table.schema.names), mask_of(out)
    for row in json_rows(table):
        out.write(mask(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)) + "\n")


def write_csv(table: pa.Table, out: TextIO) -> None:
    """Write CSV with a header; nested values are JSON."""
    writer, mask = csv.writer(out, lineterminator="\n"), mask_of(out)
    writer.writerow(distinct_names(table.schema.names))
    for row in json_rows(table):
        writer.writerow([mask(_cell(value)) for value in row])


def write_table(table: pa.Table, out: TextIO, widest: int = _WIDEST) -> None:
    """Write aligned columns; values longer than `widest` are shortened."""
    names = distinct_names(table.schema.names)
    lines = [[_short(_cell(value), widest) for value in row] for row in json_rows(table)]
    widths = [max(map(_width, column)) for column in zip(names, *lines, strict=True)]
    right = [pa.types.is_integer(f.type) or pa.types.is_floating(f.type) for f in table.schema]
    for cells in (names, ["─" * width for width in widths], *lines):
        blanks = [" " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)]
        padded = [blank + cell if is_right else cell + blank for cell, blank, is_right in zip(cells, blanks, right, strict=True)]
        out.write("  ".join(padded).rstrip() + "\n")
    _write_count(len(lines), out)


def write_expanded(table: pa.Table, out: TextIO) -> None:
    """Write one line per value, in a block per row. Values keep their length; line ends and control characters become `·`."""
    names = distinct_names(table.schema.names)
    width = max(map(_width, names), default=0)
    for number, row in enumerate(json_rows(table), 1):
        out.write(f"─[ row {number} ]".ljust(width + 2, "─") + "\n")
        for name, value in zip(names, row, strict=True):
            out.write(f"{name}{' ' * (width - _width(name))}  {masked(_cell(value))}".rstrip() + "\n")
    _write_count(table.num_rows, out)


def _write_count(rows: int, out: TextIO) -> None:
    out.write(f"({rows} row{'' if rows == 1 else 's'})\n")


WRITERS: dict[str, Callable[[pa.Table, TextIO], None]] = {"table": write_table, "json": write_json, "csv": write_csv}


def to_stdout(table: pa.Table, format_name: str) -> None:
    """Write to standard output."""
    WRITERS[format_name](table, sys.stdout)


def plain(value: Any) -> Any:
    """Convert a value to a JSON type."""
    match value:
        case datetime():
            utc = value if value.tzinfo is None else value.astimezone(UTC)
            text = utc.replace(tzinfo=None).isoformat(timespec="milliseconds" if not utc.microsecond % 1000 else "microseconds")
            return text + "Z"
        case date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case dict():
            return {str(name): plain(part) for name, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case float() if not math.isfinite(value):
            return json.dumps(value)
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def json_rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield rows as JSON values, batch by batch."""
    for batch in table.to_batches():
        yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    if (pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)) and column.type.unit == "ns":
        # the output, like Python's times, has microseconds
        microseconds = pa.timestamp("us", column.type.tz) if pa.types.is_timestamp(column.type) else pa.duration("us")
        column = column.cast(microseconds, safe=False)
    try:
        return [plain(value) for value in values_of(column)]
    except (OverflowError, ValueError):
        # Python has no times after the year 9999, Arrow does
        texts: list[str | None] = column.cast(pa.string()).to_pylist()
        return texts


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _short(text: str, widest: int) -> str:
    clean = masked(text)
    return clean if len(clean) <= widest else clean[: widest - 1] + "…"


def _width(text: str) -> int:
    """Width of a text in terminal columns."""
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)
