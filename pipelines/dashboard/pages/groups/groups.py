"""The list of groups: search, filters, order, pages of 100 rows, CSV."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.charts.sparkline import sparkline
from pipelines.dashboard.formatting.reasons import reasons
from pipelines.dashboard.history.age_series import trends
from pipelines.dashboard.pages.groups.group_filter import FILTERS, SORTS, filtered, page_of, sorted_groups
from pipelines.dashboard.pages.parts.page import Query
from pipelines.dashboard.state.moment import Moment
from pipelines.dashboard.state.recent_ages import TREND

Row = dict[str, Any]

#: Topics that the filter offers; others can be typed into the URL.
_MOST_TOPICS = 500


def groups_page(moment: Moment, query: Query) -> Row:
    """The model: the groups of one page of the list, with the values that the filters offer.

    Raises:
        UsageError: an invalid order, or the group before the page is not in the list.
    """
    summaries = _owned(moment)
    found = sorted_groups(filtered(summaries, query), query)
    rows, last = page_of(found, query.get("after"))
    listed = group_rows(moment, rows)
    return {
        "total": summaries.num_rows,
        "found": found.num_rows,
        "groups": listed,
        "trends": trends(moment, [row["group_id"] for row in listed]) if listed else {},
        "next": last,
        "offered": {
            "status": _values(summaries["status"]),
            "state": _values(summaries["state"]),
            "type": _values(summaries["group_type"]),
            "owner": moment.teams.names,
            "topic": _values(pc.list_flatten(summaries["topics"].combine_chunks()))[:_MOST_TOPICS],
        },
    }


def groups_csv(moment: Moment, query: Query) -> pa.Table:
    """All groups that the filters match, without paging."""
    rows = sorted_groups(filtered(_owned(moment), query), query)
    return rows.drop_columns(["topics", "findings"])


def _owned(moment: Moment) -> pa.Table:
    """The summaries with the team that owns each group."""
    summaries = moment.summaries()
    if not moment.teams.names:
        return summaries.append_column("owner", pa.nulls(summaries.num_rows, pa.string()))
    owners = pa.array(map(moment.teams.of, summaries["group_id"].to_pylist()), pa.string())
    return summaries.append_column("owner", owners)


def group_rows(moment: Moment, rows: pa.Table) -> list[Row]:
    """Rows of `summaries` with their status, computed for a past moment, and its reasons in words."""
    found: list[Row] = rows.to_pylist()
    missing = [row["group_id"] for row in found if row["status"] is None]
    statuses = moment.statuses(missing) if missing and not moment.is_newest else {}
    for row in found:
        status = statuses.get(row["group_id"])
        if status is not None:
            row |= {name: status[name] for name in ("status", "rule", "detail", "findings")}
        row["reasons"] = reasons(row.pop("findings") or [], moment.at)
    return found


def groups_view(model: Row, moment: Moment) -> Row:
    """Small charts, and what the form and the headings of the table need."""
    return {
        "sparklines": {group: sparkline(points, "lag", moment.at, TREND, width=80) for group, points in model["trends"].items()},
        "sorts": SORTS,
        "filters": FILTERS,
    }


def _values(column: pa.ChunkedArray | pa.Array) -> list[str]:
    return sorted(value for value in column.unique().to_pylist() if value is not None)
