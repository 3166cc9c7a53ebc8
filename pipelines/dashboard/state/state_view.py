"""A state that shows another one."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import pyarrow as pa

from pipelines.dashboard.state.moment import BatchState, Row
from pipelines.dashboard.state.query_cache import Query


class StateView(BatchState):
    """`state` as it is; a subclass changes what it shows of it."""

    def __init__(self, state: BatchState) -> None:
        self.batch = state.batch
        self.is_derived = state.is_derived
        self.is_limited = state.is_limited
        self._state = state

    @property
    def sampled_at(self) -> datetime | None:
        return self._state.sampled_at

    @property
    def commits_read_until(self) -> datetime:
        return self._state.commits_read_until

    def summaries(self) -> pa.Table:
        return self._state.summaries()

    def statuses(self, groups: Sequence[str]) -> dict[str, Row]:
        return self._state.statuses(groups)

    def group(self, group_id: str) -> Row | None:
        return self._state.group(group_id)

    def lag(self, group_id: str) -> list[Row]:
        return self._state.lag(group_id)

    def members(self, group_id: str) -> list[Row]:
        return self._state.members(group_id)

    def recent_ages(self, groups: Iterable[str], end: datetime) -> pa.Table:
        return self._state.recent_ages(groups, end)

    def query(self, sql: str) -> pa.Table:
        return self._state.query(sql)

    def reopened(self) -> Query:
        return self._state.reopened()
