"""The overview of a cluster: what needs attention, ages of the worst groups, and what happened in the last day."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.charts.area import round_top_of_seconds
from pipelines.dashboard.charts.sparkline import sparkline
from pipelines.dashboard.formatting.quantities import age, plural
from pipelines.dashboard.formatting.statuses import STATUSES, status_words
from pipelines.dashboard.history.age_series import age_series, with_current
from pipelines.dashboard.pages.groups.group_filter import sorted_groups, status_counts
from pipelines.dashboard.pages.groups.groups import group_rows
from pipelines.dashboard.pages.overview.recent_events import recent_events
from pipelines.dashboard.state.moment import Moment

Row = dict[str, Any]

#: Number of groups that need attention which the page shows.
_MOST_ROWS = 12
#: Tiles with the age of a group over the last day.
_TILES = 12
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
#: Seconds: a group that was never this old has no tile.
_LEAST_AGE = 300
_FIRST = "SELECT min(started_at) AS at FROM batches"
_TILE_WIDTH, _TILE_HEIGHT = 260, 56


def overview_page(moment: Moment) -> Row:
    """The model of the page."""
    summaries = moment.summaries()
    ordered = sorted_groups(summaries, {})
    attention = [status for status, words in STATUSES.items() if words.tone in ("bad", "warn")]
    needing = ordered.filter(pc.is_in(ordered["status"], value_set=pc.cast(attention, "string")))
    # few groups are listed even if none needs attention
    listed = ordered if not needing.num_rows and ordered.num_rows <= _MOST_ROWS else needing.slice(0, 0)
    oldest = sorted_groups(summaries, {"sort": "age"}).slice(0, _TILES)
    current = {row["group_id"]: row for row in oldest.to_pylist() if row["lag_seconds"] is not None}
    ages = {group: row["lag_seconds"] for group, row in current.items()}
    return {
        "groups": summaries.num_rows,
        "statuses": status_counts(summaries),
        "needing_attention": needing.num_rows,
        "attention": _rows(moment, needing.slice(0, _MOST_ROWS)),
        "others": _rows(moment, listed),
        "ages": [
            {
                **{name: current[group][name] for name in ("group_id", "lag_seconds", "lag_seconds_high")},
                "points": with_current(points, current[group], moment.sampled_at),
            }
            for group, points in _in_order(age_series(moment, ages, _DAY), ages)
        ],
        "last_day": recent_events(moment, moment.at, _DAY),
        "first_batch_at": _first_batch(moment),
    }


def _rows(moment: Moment, groups: pa.Table) -> list[Row]:
    return [{**row, "owner": moment.teams.of(row["group_id"])} for row in group_rows(moment, groups)]


def _first_batch(moment: Moment) -> datetime | None:
    """Start of the first batch if it was in the last day: what happened before it may be unknown."""
    at: datetime | None = moment.query(_FIRST)["at"][0].as_py()
    return at if at is not None and at > moment.at - _DAY else None


def overview_view(model: Row, moment: Moment) -> Row:
    """Headline, and tiles of the groups that were behind for a time, each on its own scale."""
    # a day of which the tables have less than an hour would be a line at the right edge
    is_first_hour = model["first_batch_at"] is not None and moment.at - model["first_batch_at"] < _HOUR
    behind = [each for each in model["ages"] if was_behind(each) and not is_first_hour]
    tiles = [_tile(each, moment) for each in behind]
    hours = hourly_ages([each["points"] for each in behind])
    return {
        "headline": _headline(model, moment),
        "tiles": tiles,
        "hours": hours,
        "happened": [name for name, found in model["last_day"].items() if found["groups"]],
        "least_age": _LEAST_AGE,
        "day": [moment.at - _DAY, moment.at - _DAY / 2, moment.at],
    }


def was_behind(each: Row) -> bool:
    """True for a group that was once at least five minutes behind: the age of others is that of their last commits."""
    most = _most(each)
    return most is not None and most["lag_seconds"] >= _LEAST_AGE


def _tile(each: Row, moment: Moment) -> Row:
    top = round_top_of_seconds(point["lag_seconds"] for point in each["points"] if point["lag_seconds"] is not None)
    return {
        **each,
        "chart": sparkline(each["points"], "lag_seconds", moment.at, _DAY, width=_TILE_WIDTH, height=_TILE_HEIGHT, top=top),
        "top": top,
        "summary": _tile_summary(each),
        "most": _most(each),
    }


def _headline(model: Row, moment: Moment) -> str:
    number = model["needing_attention"]
    if not model["groups"]:
        return "No groups yet"
    if moment.age is not None and moment.age.is_old:
        return f"{plural(model['groups'], 'group')}, {'status' if model['groups'] == 1 else 'all statuses'} unknown"
    if all(each["status"] is None for each in model["statuses"]):
        return plural(model["groups"], "group")
    if not number:
        unknown = sum(each["groups"] for each in model["statuses"] if status_words(each["status"]).tone == "unknown")
        if unknown == model["groups"]:
            return f"{plural(unknown, 'group')}, {'status' if unknown == 1 else 'all statuses'} unknown"
        return "Nothing needs attention" + (f", {plural(unknown, 'group')} unknown" if unknown else "")
    return f"{plural(number, 'group')} {'needs' if number == 1 else 'need'} attention"


def _tile_summary(each: Row) -> str:
    most = _most(each)
    return "no samples in 24 h" if most is None else f"now {age(each)}, greatest {age(most)} in 24 h"


def _most(each: Row) -> Row | None:
    """The point with the greatest known age; None without one."""
    known = (point for point in each["points"] if point["lag_seconds"] is not None)
    return max(known, key=lambda point: point["lag_seconds"], default=None)


def _in_order(series: dict[str, list[Row]], ages: dict[str, float]) -> list[tuple[str, list[Row]]]:
    return sorted(series.items(), key=lambda item: (-ages[item[0]], item[0]))


class HourRow(NamedTuple):
    """The point with the greatest age of each group in the hour that begins at `start`; None without a sample."""

    start: datetime
    ages: tuple[Mapping[str, Any] | None, ...]


def hourly_ages(series: Sequence[Sequence[Mapping[str, Any]]]) -> list[HourRow]:
    """One row per hour with a known age in any of the series, the newest first."""
    greatest: list[dict[datetime, Mapping[str, Any]]] = []
    for points in series:
        by_hour: dict[datetime, Mapping[str, Any]] = {}
        for point in points:
            if point["lag_seconds"] is not None:
                hour = point["at"].replace(minute=0, second=0, microsecond=0)
                if hour not in by_hour or point["lag_seconds"] > by_hour[hour]["lag_seconds"]:
                    by_hour[hour] = point
        greatest.append(by_hour)
    hours = sorted(set().union(*greatest), reverse=True)
    return [HourRow(hour, tuple(each.get(hour) for each in greatest)) for hour in hours]
