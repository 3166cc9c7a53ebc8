"""The overview of a cluster: what needs attention, ages of the worst groups, and what happened in the last day."""

from datetime import timedelta
from typing import Any

import pyarrow.compute as pc

from pipelines.dashboard.charts.area import round_top_of_seconds
from pipelines.dashboard.charts.sparkline import sparkline
from pipelines.dashboard.history.age_series import age_series
from pipelines.dashboard.history.recent_events import recent_events
from pipelines.dashboard.moments.moment import Moment
from pipelines.dashboard.pages.group_filter import sorted_groups, status_counts
from pipelines.dashboard.pages.groups import group_rows
from pipelines.dashboard.pages.hourly_ages import hourly_ages
from pipelines.dashboard.words.quantities import duration, plural
from pipelines.dashboard.words.statuses import STATUSES, status_words

Row = dict[str, Any]

#: Number of groups that need attention which the page shows.
_MOST_ROWS = 12
#: Tiles with the age of a group over the last day.
_TILES = 12
_DAY = timedelta(days=1)
_TILE_WIDTH, _TILE_HEIGHT = 260, 56


def overview_page(moment: Moment) -> Row:
    """The model of the page."""
    summaries = moment.summaries()
    ordered = sorted_groups(summaries, {})
    attention = [status for status, words in STATUSES.items() if words.tone in ("bad", "warn")]
    needing = ordered.filter(pc.is_in(ordered["status"], value_set=pc.cast(attention, "string")))
    oldest = sorted_groups(summaries, {"sort": "age"}).slice(0, _TILES)
    ages = {row["group_id"]: row["lag_seconds"] for row in oldest.to_pylist() if row["lag_seconds"] is not None}
    return {
        "groups": summaries.num_rows,
        "statuses": status_counts(summaries),
        "needing_attention": needing.num_rows,
        "attention": group_rows(moment, needing.slice(0, _MOST_ROWS)),
        "ages": [
            {"group_id": group, "lag_seconds": ages[group], "points": points}
            for group, points in _in_order(age_series(moment, ages, _DAY), ages)
        ],
        "last_day": recent_events(moment, moment.at, _DAY),
    }


def overview_view(model: Row, moment: Moment) -> Row:
    """Headline, and tiles on one scale."""
    points = [point["lag_seconds"] for each in model["ages"] for point in each["points"] if point["lag_seconds"] is not None]
    top = round_top_of_seconds(points)
    tiles = [
        {
            **each,
            "chart": sparkline(each["points"], "lag_seconds", moment.at, _DAY, width=_TILE_WIDTH, height=_TILE_HEIGHT, top=top),
            "summary": _tile_summary(each),
            "most": max(_known(each), default=None),
        }
        for each in model["ages"]
    ]
    hours = hourly_ages([each["points"] for each in model["ages"]])
    return {"headline": _headline(model), "tiles": tiles, "tile_top": top, "hours": hours}


def _headline(model: Row) -> str:
    number = model["needing_attention"]
    if not model["groups"]:
        return "No groups yet"
    if all(each["status"] is None for each in model["statuses"]):
        return plural(model["groups"], "group")
    if not number:
        unknown = sum(each["groups"] for each in model["statuses"] if status_words(each["status"]).tone == "unknown")
        return "Nothing needs attention" + (f", {plural(unknown, 'group')} unknown" if unknown else "")
    return f"{plural(number, 'group')} {'needs' if number == 1 else 'need'} attention"


def _tile_summary(each: Row) -> str:
    known = _known(each)
    if not known:
        return "no samples in 24 h"
    return f"now {duration(each['lag_seconds'])}, at most {duration(max(known))} in 24 h"


def _known(each: Row) -> list[float]:
    return [point["lag_seconds"] for point in each["points"] if point["lag_seconds"] is not None]


def _in_order(series: dict[str, list[Row]], ages: dict[str, float]) -> list[tuple[str, list[Row]]]:
    return sorted(series.items(), key=lambda item: (-ages[item[0]], item[0]))
