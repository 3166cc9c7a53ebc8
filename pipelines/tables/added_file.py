"""The `add` action of a data file that Grouplake has written, with statistics of its columns (Delta's PROTOCOL.md)."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class FileStatistics:
    """Statistics of some columns of a file, from its rows in pieces."""

    def __init__(self, columns: Iterable[str]) -> None:
        self._low: dict[str, Any] = {}
        self._high: dict[str, Any] = {}
        self._nulls = dict.fromkeys(columns, 0)
        self._rows = 0

    def add(self, rows: pa.Table) -> None:
        """Take the next rows of the file."""
        self._rows += rows.num_rows
        for name in self._nulls:
            column = rows[name]
            self._nulls[name] += column.null_count
            if column.null_count == len(column) or not _is_ordered(column.type):
                continue
            found = pc.min_max(column).as_py()
            self._low[name] = min(found["min"], self._low.get(name, found["min"]))
            self._high[name] = max(found["max"], self._high.get(name, found["max"]))

    def to_json(self) -> str:
        """Return the value of `stats`."""
        values = {
            "numRecords": self._rows,
            "minValues": _json_values(self._low),
            "maxValues": _json_values(self._high),
            "nullCount": self._nulls,
        }
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def add_action(path: str, size: int, time_ms: int, statistics: FileStatistics) -> dict[str, Any]:
    """Return the action of a file, without `dataChange`, which its commit decides."""
    return {"path": path, "partitionValues": {}, "size": size, "modificationTime": time_ms, "stats": statistics.to_json()}


def _is_ordered(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_timestamp(kind))


def _json_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of statistics. Times are cut off to milliseconds ("Per-file Statistics")."""
    return {
        name: f"{value.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z" if isinstance(value, datetime) else value
        for name, value in values.items()
    }
