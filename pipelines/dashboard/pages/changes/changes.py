"""The comparison of two times: groups that appeared, vanished, rebalanced, were reset or made progress."""

from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.pages.parts.page import Query
from pipelines.dashboard.state.errors import InvalidRequest
from pipelines.dashboard.state.moment import Moment
from pipelines.query.diff_report import summary

Row = dict[str, Any]

#: Distance to the earlier time, without one in the query.
_DAY = timedelta(days=1)
_FIRST = "SELECT min(finished_at) AS at FROM batches"
#: Changes of partitions that are added up by topic.
_ADDED_UP = ("committed", "progress", "removed", "reset", "rewind")
#: Changes of members, one row for all of a group.
_OF_MEMBERS = ("member_joined", "member_left")
_NAMED_MEMBERS = 5
_MOST_ROWS = 500
_PROGRESS = "progress"
#: Changes, the most serious first.
_BY_WEIGHT = (
    *("reset", "rewind", "removed", "vanished", "state", "member_left", "rebalanced", "member_joined"),
    *("appeared", "committed", "first_read", _PROGRESS),
)


def changes_page(moment: Moment, query: Query, *, most_rows: int | None = _MOST_ROWS, group: str | None = None) -> Row:
    """The model: the changes between the time `from` of the query and the time of the page, of one group or of all.

    Raises:
        UsageError: not a time, or no batch at that time.
        RemovedState: the state at that time can no longer be known.
    """
    earlier = _time(query.get("from")) if query.get("from") else max(moment.at - _DAY, _first(moment))
    if earlier >= moment.at:
        raise InvalidRequest(f"from={earlier:%Y-%m-%dT%H:%M:%SZ} is not before the time of the page: exchange them")
    changes = [row for row in moment.changes_since(earlier).to_pylist() if group in (None, row["group_id"])]
    rows = by_weight(_added_up(changes))
    return {
        "from": earlier,
        "to": moment.at,
        "summary": summary(changes),
        "changes": rows[:most_rows],
        "more": max(0, len(rows) - most_rows) if most_rows is not None else 0,
    }


def by_weight(rows: list[Row]) -> list[Row]:
    """The rows, the groups with the most serious change first, and the most serious change of a group first."""
    rank = {change: number for number, change in enumerate(_BY_WEIGHT)}
    weight = {group: min(rank[row["change"]] for row in found) for group, found in _by_group(rows).items()}
    return sorted(rows, key=lambda row: (weight[row["group_id"]], row["group_id"], rank[row["change"]]))


def _by_group(rows: list[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["group_id"], []).append(row)
    return found


def changes_view(model: Row, _: Moment) -> Row:
    """The rows without progress, which every healthy group makes; the number of groups that only made progress."""
    shown = [row for row in model["changes"] if row["change"] != _PROGRESS]
    others = {row["group_id"] for row in model["changes"]} - {row["group_id"] for row in shown}
    return {"shown": shown, "only_progress": len(others)}


def _first(moment: Moment) -> datetime:
    first: datetime = moment.query(_FIRST)["at"][0].as_py()
    return first


def _time(text: str | None) -> datetime:
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError as error:
        raise InvalidRequest(f"invalid from {text!r}: use an ISO 8601 time such as 2026-03-01T12:00:00Z") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _added_up(changes: list[Row]) -> list[Row]:
    """One row per group, change and topic. `by` is the sum of the movements of offsets, `partitions` their number."""
    found = []
    for _, group in groupby(changes, key=lambda row: (row["group_id"], row["change"], row["topic"])):
        rows = list(group)
        if rows[0]["change"] in _OF_MEMBERS:
            names = ", ".join(sorted({visible(row["detail"], 40) for row in rows})[:_NAMED_MEMBERS])
            found.append({**rows[0], "from": None, "to": None, "partitions": None, "by": None, "detail": f"{len(rows)}: {names}"})
        elif rows[0]["change"] in _ADDED_UP:
            moved = [int(row["to"]) - int(row["from"]) for row in rows if row["from"] is not None and row["to"] is not None]
            one = rows[0] if len(rows) == 1 else {**rows[0], "partition": None, "from": None, "to": None}
            found.append({**one, "partitions": len(rows), "by": sum(moved) if moved else None, "detail": None})
        else:
            found += [{**row, "partitions": None, "by": None} for row in rows]
    return found
