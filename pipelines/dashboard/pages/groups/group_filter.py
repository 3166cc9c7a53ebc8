"""Filter, order and pages of the list of groups, in columns: a list of 10,000 groups takes a few milliseconds."""

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.formatting.statuses import NO_STATUS, STATUSES
from pipelines.dashboard.pages.parts.page import Query, choice
from pipelines.dashboard.path_names import decode_name, encode_name
from pipelines.dashboard.state.errors import InvalidRequest

#: Rows of a page of the list.
PAGE_ROWS = 100
_NO_STATUS = "none"

#: Name in the query → column of `summaries`, and the direction in which the list begins.
SORTS: Mapping[str, tuple[str, str]] = {
    "status": ("rank", "ascending"),
    "age": ("lag_seconds", "descending"),
    "lag": ("lag", "descending"),
    "group": ("group_id", "ascending"),
    "members": ("member_count", "descending"),
    "last_commit": ("last_commit_at", "descending"),
    "last_rebalance": ("last_rebalance_at", "descending"),
}
#: Order of groups that are equal by the first key.
_TIES = (("lag_seconds", "descending"), ("lag", "descending"), ("group_id", "ascending"))
_REVERSED = {"ascending": "descending", "descending": "ascending"}


def _search(rows: pa.Table, text: str) -> pa.Array:
    return pc.match_substring(rows["group_id"], text, ignore_case=True)


def _status(rows: pa.Table, status: str) -> pa.Array:
    return rows["status"].is_null() if status == _NO_STATUS else pc.equal(rows["status"], status)


def _topic(rows: pa.Table, topic: str) -> pa.Array:
    topics = rows["topics"].combine_chunks()
    found = pc.list_parent_indices(topics).filter(pc.equal(pc.list_flatten(topics), topic))
    return pc.is_in(pa.array(range(rows.num_rows), pa.int64()), value_set=found.cast(pa.int64()))


#: Filters by their name in the query.
_FILTERS: Mapping[str, Callable[[pa.Table, str], pa.Array]] = {
    "q": _search,
    "state": lambda rows, state: pc.equal(rows["state"], state),
    "status": _status,
    "type": lambda rows, kind: pc.equal(rows["group_type"], kind),
    "topic": _topic,
    "owner": lambda rows, owner: pc.equal(rows["owner"], owner),
}
FILTERS = tuple(_FILTERS)


def filtered(summaries: pa.Table, query: Query) -> pa.Table:
    """The groups that all filters of the query match."""
    for name, matches in _FILTERS.items():
        value = query.get(name)
        if value:
            summaries = summaries.filter(matches(summaries, value))
    return summaries


def sorted_groups(groups: pa.Table, query: Query) -> pa.Table:
    """The groups in the order of the parameter `sort`, by default the worst first. Unknown values come last.

    A name with `-` before it reverses its order. Raises InvalidRequest for another name.
    """
    text = query.get("sort") or next(iter(SORTS))
    column, direction = SORTS[choice("sort", text.removeprefix("-"), list(SORTS))]
    direction = _REVERSED[direction] if text.startswith("-") else direction
    groups = groups.append_column("rank", _ranks(groups["status"]))
    keys = {column: direction}
    for name, order in _TIES:
        keys.setdefault(name, order)
    return groups.take(pc.sort_indices(groups, list(keys.items()))).drop_columns(["rank"])


def page_of(groups: pa.Table, after: str | None, rows: int = PAGE_ROWS) -> tuple[pa.Table, str | None]:
    """The rows after the group `after`, or the first ones, and `after` of the next page if there is one.

    The group is encoded as in paths, because the empty name is one.

    Raises:
        UsageError: `after` is not in the list.
    """
    first = 0
    if after:
        place = pc.index(groups["group_id"], pa.scalar(decode_name(after), pa.string())).as_py()
        if place < 0:
            raise InvalidRequest(f"no group {after!r} in this list: begin again at its first page")
        first = place + 1
    page = groups.slice(first, rows)
    more = first + rows < groups.num_rows
    return page, encode_name(page["group_id"][-1].as_py()) if more else None


def status_counts(summaries: pa.Table) -> list[dict[str, object]]:
    """Number of groups by status, the worst first; `status` is null for groups without one."""
    counted = {row["values"]: row["counts"] for row in pc.value_counts(summaries["status"].combine_chunks()).to_pylist()}
    known = [{"status": status, "groups": counted[status]} for status in STATUSES if status in counted]
    others = [{"status": status, "groups": counted[status]} for status in sorted(set(counted) - set(STATUSES) - {None})]
    return [*known, *others, *([{"status": None, "groups": counted[None]}] if counted.get(None) else [])]


def _ranks(status: pa.ChunkedArray) -> pa.Array:
    names = pa.array(list(STATUSES))
    ranks = pa.array([words.rank for words in STATUSES.values()], pa.int64())
    return pc.fill_null(ranks.take(pc.index_in(status.combine_chunks(), value_set=names)), NO_STATUS.rank)
