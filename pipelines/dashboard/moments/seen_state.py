"""A state as a viewer with a limited role sees it: groups outside of the role do not exist."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.moments.kept_queries import Query
from pipelines.dashboard.moments.moment import BatchState, Moment, Row
from pipelines.dashboard.security.viewer import Viewer

_GROUP = "group_id"


def seen_moment(moment: Moment, viewer: Viewer) -> Moment:
    """The moment without the groups that the viewer may not see."""
    if not viewer.is_limited:
        return moment

    def changes_since(earlier: datetime) -> pa.Table:
        return seen_rows(moment.changes_since(earlier), viewer)

    return replace(moment, state=SeenState(moment.state, viewer), changes_since=changes_since)


def seen_rows(rows: pa.Table, viewer: Viewer) -> pa.Table:
    """The rows of groups that the viewer may see. Rows without a group are of the cluster: batches, topics."""
    if _GROUP not in rows.column_names:
        return rows
    groups = rows[_GROUP].unique().to_pylist()
    hidden = pa.array([group for group in groups if group is not None and not viewer.may_see(group)], pa.string())
    return rows.filter(pc.invert(pc.is_in(rows[_GROUP], value_set=hidden))) if len(hidden) else rows


class SeenState(BatchState):
    """The part of a state that a viewer may see.

    Queries of pages have the column `group_id` if their rows are of groups, so that the rows can be left out.
    """

    is_limited = True

    def __init__(self, state: BatchState, viewer: Viewer) -> None:
        self.batch = state.batch
        self._state = state
        self._viewer = viewer

    @property
    def sampled_at(self) -> datetime | None:
        return self._state.sampled_at

    def summaries(self) -> pa.Table:
        return seen_rows(self._state.summaries(), self._viewer)

    def statuses(self, groups: Sequence[str]) -> dict[str, Row]:
        return self._state.statuses(self._viewer.visible(groups))

    def group(self, group_id: str) -> Row | None:
        return self._state.group(group_id) if self._viewer.may_see(group_id) else None

    def lag(self, group_id: str) -> list[Row]:
        return self._state.lag(group_id) if self._viewer.may_see(group_id) else []

    def members(self, group_id: str) -> list[Row]:
        return self._state.members(group_id) if self._viewer.may_see(group_id) else []

    def recent_ages(self, groups: Iterable[str], end: datetime) -> pa.Table:
        return seen_rows(self._state.recent_ages(self._viewer.visible(groups), end), self._viewer)

    def query(self, sql: str) -> pa.Table:
        return seen_rows(self._state.query(sql), self._viewer)

    def reopened(self) -> Query:
        query = self._state.reopened()
        return lambda sql: seen_rows(query(sql), self._viewer)
