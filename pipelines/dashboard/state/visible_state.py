"""A state as a viewer with a limited role sees it: groups outside of the role do not exist."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.security.viewer import Viewer
from pipelines.dashboard.state.moment import BatchState, Moment, Row
from pipelines.dashboard.state.query_cache import Query
from pipelines.dashboard.state.state_view import StateView

_GROUP = "group_id"


def visible_moment(moment: Moment, viewer: Viewer) -> Moment:
    """The moment without the groups that the viewer may not see."""
    if not viewer.is_limited:
        return moment

    def changes_since(earlier: datetime) -> pa.Table:
        return visible_rows(moment.changes_since(earlier), viewer)

    return replace(moment, state=VisibleState(moment.state, viewer), changes_since=changes_since)


def visible_rows(rows: pa.Table, viewer: Viewer) -> pa.Table:
    """The rows of groups that the viewer may see. Rows without the column are of the cluster: batches, log ends of a topic.

    A null as group is an alert or a delivery of several groups, which may be any.
    """
    if _GROUP not in rows.column_names:
        return rows
    groups = rows[_GROUP].unique().to_pylist()
    seen = pa.array([group for group in groups if group is not None and viewer.may_see(group)], pa.string())
    return rows if len(seen) == len(groups) else rows.filter(pc.is_in(rows[_GROUP], value_set=seen))


class VisibleState(StateView):
    """The part of a state that a viewer may see.

    Queries of pages have the column `group_id` if their rows are of groups, so that the rows can be left out.
    """

    def __init__(self, state: BatchState, viewer: Viewer) -> None:
        super().__init__(state)
        self.is_limited = True
        self._viewer = viewer

    def summaries(self) -> pa.Table:
        return visible_rows(self._state.summaries(), self._viewer)

    def statuses(self, groups: Sequence[str]) -> dict[str, Row]:
        return self._state.statuses(self._viewer.visible(groups))

    def group(self, group_id: str) -> Row | None:
        return self._state.group(group_id) if self._viewer.may_see(group_id) else None

    def lag(self, group_id: str) -> list[Row]:
        return self._state.lag(group_id) if self._viewer.may_see(group_id) else []

    def members(self, group_id: str) -> list[Row]:
        return self._state.members(group_id) if self._viewer.may_see(group_id) else []

    def recent_ages(self, groups: Iterable[str], end: datetime) -> pa.Table:
        return visible_rows(self._state.recent_ages(self._viewer.visible(groups), end), self._viewer)

    def query(self, sql: str) -> pa.Table:
        return visible_rows(self._state.query(sql), self._viewer)

    def reopened(self) -> Query:
        query = self._state.reopened()
        return lambda sql: visible_rows(query(sql), self._viewer)
