"""Lag and age of some groups over time, for small charts."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pyarrow as pa

from pipelines.dashboard.history.group_history import with_gaps
from pipelines.dashboard.history.thinned_series import thinned
from pipelines.dashboard.moments.moment import Moment
from pipelines.dashboard.moments.recent_ages import BEFORE, ages_between

#: Points of a small chart.
_POINTS = 60

#: Group → points with `at`, `lag` and `lag_seconds`, in the order of time; a point without values begins a gap.
Series = dict[str, list[dict[str, Any]]]


def age_series(moment: Moment, groups: Iterable[str], span: timedelta) -> Series:
    """The points of each group in a span before the moment."""
    names = set(groups)
    return _points(ages_between(moment.query, names, moment.at - span - BEFORE, moment.at), names)


def trends(moment: Moment, groups: Iterable[str]) -> Series:
    """The points of each group in the last hour."""
    names = set(groups)
    return _points(moment.recent_ages(names), names)


def _points(rows: pa.Table, names: set[str]) -> Series:
    found: Series = {name: [] for name in names}
    for row in rows.to_pylist():
        group = row.pop("group_id")
        # a long list of names is a range in SQL
        if group in found:
            found[group].append(row)
    return {group: thinned(with_gaps(points), "lag_seconds", _POINTS) for group, points in found.items()}
