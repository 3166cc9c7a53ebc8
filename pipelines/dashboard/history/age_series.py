"""Lag and age of some groups over time, for small charts."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from pipelines.dashboard.history.group_history import with_gaps
from pipelines.dashboard.history.sampling_gaps import Gap, gaps_of_samples, with_unsampled
from pipelines.dashboard.history.thinned_series import thinned
from pipelines.dashboard.state.moment import Moment
from pipelines.dashboard.state.recent_ages import BEFORE, TREND, ages_between

#: Points of a small chart.
_POINTS = 60

#: Group → points with `at`, `lag` and `lag_seconds`, in the order of time; a point without values begins a gap.
Series = dict[str, list[dict[str, Any]]]


def age_series(moment: Moment, groups: Iterable[str], span: timedelta) -> Series:
    """The points of each group in a span before the moment."""
    names = set(groups)
    start = moment.at - span - BEFORE
    return _points(ages_between(moment.query, names, start, moment.at), names, _gaps(moment, start))


def trends(moment: Moment, groups: Iterable[str]) -> Series:
    """The points of each group in the last hour."""
    names = set(groups)
    return _points(moment.recent_ages(names), names, _gaps(moment, moment.at - TREND - BEFORE))


def with_current(points: Sequence[dict[str, Any]], current: Mapping[str, Any], at: datetime | None) -> list[dict[str, Any]]:
    """The points, and the values of the newest sample: the history has a row of it only if the group has changed since."""
    if at is None or current["lag"] is None or (points and points[-1]["at"] >= at):
        return list(points)
    names = points[-1] if points else dict.fromkeys(("at", "lag", "lag_seconds", "lag_seconds_high"))
    return [*points, {**{name: current.get(name) for name in names}, "at": at}]


def _gaps(moment: Moment, start: datetime) -> list[Gap]:
    # the batch of a sample is complete after it
    return gaps_of_samples(moment.query, start, max(moment.at, moment.batch.finished_at))


def _points(rows: pa.Table, names: set[str], gaps: Sequence[Gap]) -> Series:
    found: Series = {name: [] for name in names}
    for row in rows.to_pylist():
        group = row.pop("group_id")
        # a long list of names is a range in SQL
        if group in found:
            found[group].append(row)
    return {group: thinned(with_gaps(with_unsampled(points, gaps)), "lag_seconds", _POINTS) for group, points in found.items()}
