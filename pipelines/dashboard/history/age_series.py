"""Lag and age of some groups over time, for small charts."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from pipelines.dashboard.history.group_history import Queries, with_gaps
from pipelines.dashboard.history.thinned_series import thinned
from pipelines.tables.store import is_in, timestamp_literal

_SERIES = """
SELECT group_id, sampled_at AS at, sum(lag) AS lag, max(lag_seconds) AS lag_seconds FROM lag_history
WHERE {groups} AND sampled_at BETWEEN {start} AND {end} GROUP BY group_id, sampled_at ORDER BY group_id, sampled_at
"""
#: Points of a small chart.
_POINTS = 60
#: A row is at most this long before the span that it holds for.
_BEFORE = timedelta(minutes=20)


def age_series(tables: Queries, groups: Iterable[str], end: datetime, span: timedelta) -> dict[str, list[dict[str, Any]]]:
    """Group → points with `at`, `lag` and `lag_seconds`, in the order of time; a point without values begins a gap."""
    names = set(groups)
    rows = tables.query(
        _SERIES.format(groups=is_in("group_id", names), start=timestamp_literal(end - span - _BEFORE), end=timestamp_literal(end))
    ).to_pylist()
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for row in rows:
        group = row.pop("group_id")
        # a long list of names is a range in SQL
        if group in found:
            found[group].append(row)
    return {group: thinned(with_gaps(points), "lag_seconds", _POINTS) for group, points in found.items()}
