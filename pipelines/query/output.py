"""Query results as text: a table for people, JSON lines and CSV for programs. Times are ISO 8601 in UTC."""

import base64
import csv
import json
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, TextIO

import pyarrow as pa

from pipelines.query.engine import rows_of

_WIDEST = 60


def write_json(table: pa.Table, out: TextIO) -> None:
    """One JSON object a line."""
    for row in rows_of(table):
        out.write(json.dumps({name: plain(value) for name, value in row.items()}, ensure_ascii=False) + "\n")


def write_csv(table: pa.Table, out: TextIO) -> None:
    """CSV with a header; nested values as JSON."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.schema.names)
    for row in rows_of(table):
        writer.writerow([_cell(value) for value in row.values()])


def write_table(table: pa.Table, out: TextIO) -> None:
    """Aligned columns, long values cut."""
    names = table.schema.names
    lines = [[_short(_cell(value)) for value in row.values()] for row in rows_of(table)]
    widths = [max(len(cell) for cell in column) for column in zip(names, *lines, strict=True)]
    right = [pa.types.is_integer(f.type) or pa.types.is_floating(f.type) for f in table.schema]
    for cells in (names, ["─" * width for width in widths], *lines):
        padded = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True)]
        out.write("  ".join(padded).rstrip() + "\n")
    out.write(f"({len(lines)} row{'' if len(lines) == 1 else 's'})\n")


WRITERS: dict[str, Callable[[pa.Table, TextIO], None]] = {"table": write_table, "json": write_json, "csv": write_csv}


def plain(value: Any) -> Any:
    """A value as JSON knows it."""
    match value:
        case datetime():
            utc = value if value.tzinfo is None else value.astimezone(UTC)
            text = utc.replace(tzinfo=None).isoformat(timespec="milliseconds" if not utc.microsecond % 1000 else "microseconds")
            return text + "Z"
        case date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case dict():
            return {str(name): plain(part) for name, part in value.items()}
        case list() if value and all(isinstance(part, tuple) and len(part) == 2 for part in value):
            return {str(name): plain(part) for name, part in value}
        case list() | tuple():
            return [plain(part) for part in value]
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def _cell(value: Any) -> str:
    shown = plain(value)
    if shown is None:
        return ""
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def _short(text: str) -> str:
    clean = "".join(c if c.isprintable() else "·" for c in text)
    return clean if len(clean) <= _WIDEST else clean[: _WIDEST - 1] + "…"


def to_stdout(table: pa.Table, format_name: str) -> None:
    """Writes to standard output."""
    WRITERS[format_name](table, sys.stdout)
