"""Rows of tables in a form that is equal for equal values, whichever library has read them.

Maps, which have no order, are sorted pairs, times are microseconds, whole numbers are integers, and a null equals the NaN that
pandas has for it. Programs of other environments begin with the text of this module, which therefore needs the standard library
only.
"""

import datetime
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def digest(rows: Iterable[Mapping[str, Any]]) -> list[Any]:
    """The number of rows, and a hash of their values in any order."""
    lines = sorted(json.dumps({name: canonical(value) for name, value in row.items()}, sort_keys=True) for row in rows)
    return [len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest()]


def canonical(value: Any) -> Any:
    """A value as JSON has it."""
    if value is None or isinstance(value, str):
        return value
    if hasattr(value, "to_pydatetime"):
        # a time of pandas; the tables have no nanoseconds
        return None if value != value else canonical(value.to_pydatetime(warn=False))
    if isinstance(value, datetime.datetime):
        at = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
        return (at - _EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if hasattr(value, "tolist"):
        return canonical(value.tolist())
    if isinstance(value, int | float):
        if value != value:
            return None
        return int(value) if math.isfinite(value) and value == int(value) else str(value)
    if isinstance(value, dict):
        return _sorted_pairs(value.items())
    if isinstance(value, list | tuple):
        pairs = [_pair(item) for item in value]
        return _sorted_pairs(pairs) if pairs and all(pairs) else [canonical(item) for item in value]
    return None if value != value else str(value)


def _pair(item: Any) -> Any:
    """An entry of a map, or None: libraries have tuples, or structs of key and value."""
    if isinstance(item, dict) and set(item) == {"key", "value"}:
        return item["key"], item["value"]
    return item if isinstance(item, tuple) and len(item) == 2 else None


def _sorted_pairs(pairs: Iterable[Any]) -> list[list[Any]]:
    return sorted([str(key), canonical(value)] for key, value in pairs)
