"""The greatest of several ages, with its bounds."""

from collections.abc import Iterable, Mapping
from typing import Any

#: Columns of an age.
AGE = ("lag_seconds", "lag_seconds_low", "lag_seconds_high")


def greatest_age(rows: Iterable[Mapping[str, Any]], *more: str) -> dict[str, Any]:
    """The columns of AGE, and `more` ones, of the row with the greatest known age; None without one.

    It has an upper bound only if the age of every other row that is behind has one. An age of 0 beside rows that are behind for
    an unknown time is unknown.
    """
    known = list(rows)
    oldest = max((row for row in known if row["lag_seconds"] is not None), key=lambda row: row["lag_seconds"], default={})
    found = {name: oldest.get(name) for name in (*AGE, *more)}
    if any(without_bound(row) for row in known):
        found.update(dict.fromkeys(("lag_seconds_high",) if found["lag_seconds"] else AGE))
    return found


def without_bound(row: Mapping[str, Any]) -> bool:
    """True if the row may be older than any known time."""
    if row["lag_seconds"] is None:
        return bool((row.get("lag") or 0) > 0)
    return bool(row["lag_seconds"]) and row["lag_seconds_high"] is None
