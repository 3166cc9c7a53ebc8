"""A table as CSV for spreadsheets: a name that looks like a formula is text."""

import csv
import io
from datetime import datetime

import pyarrow as pa

from pipelines.dashboard.formatting.times import iso

#: First characters of formulas in spreadsheets.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def table_csv(table: pa.Table) -> str:
    """A header and a line per row; null is empty, times are ISO 8601 in UTC."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(table.column_names)
    writer.writerows([_cell(value) for value in row.values()] for row in table.to_pylist())
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return iso(value) if isinstance(value, datetime) else value
