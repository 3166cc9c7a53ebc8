"""The newest batch, from the snapshot in memory."""

import threading
from collections.abc import Iterable, Sequence
from datetime import datetime

import pyarrow as pa

from pipelines.dashboard.state.moment import BatchState, Row
from pipelines.dashboard.state.partition_decisions import with_decisions
from pipelines.dashboard.state.query_cache import Query, QueryCache
from pipelines.dashboard.state.recent_ages import NewestAges, RecentAges
from pipelines.dashboard.state.summary_rows import STATUS_COLUMNS, lag_sums, summary_rows
from pipelines.dashboard.state.summary_times import NewestRebalances, last_commits
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot


class NewestState(BatchState):
    """Answers from memory, except for queries."""

    def __init__(self, snapshot: MemorySnapshot, queries: QueryCache, rebalances: NewestRebalances, ages: NewestAges) -> None:
        self.batch = snapshot.batch
        self._snapshot = snapshot
        self._queries = queries
        self._rebalances = rebalances
        self._ages = ages
        self._lock = threading.Lock()
        self._summaries: pa.Table | None = None

    @property
    def sampled_at(self) -> datetime | None:
        return self._snapshot.sampled_at

    @property
    def commits_read_until(self) -> datetime:
        return self._snapshot.commits_read_until

    def prepare_like(self, earlier: "NewestState") -> None:
        """Make what pages have asked an earlier state for, so that the first page of this one does not wait for it."""
        if earlier.has_summaries:
            self.summaries()
        if earlier.has_ages:
            self._recent_ages()

    @property
    def has_summaries(self) -> bool:
        """True once a page has asked for them."""
        return self._summaries is not None

    @property
    def has_ages(self) -> bool:
        """True once a page has asked for ages of the last hour."""
        return self._ages.batch_id >= self.batch.batch_id

    def summaries(self) -> pa.Table:
        with self._lock:
            if self._summaries is None:
                self._summaries = self._made_summaries()
            return self._summaries

    def _made_summaries(self) -> pa.Table:
        status = self._snapshot.group_status
        more = [last_commits(self._queries), self._rebalances.until(self._queries, self.batch)]
        if status is not None:
            more.append(status.table.select(STATUS_COLUMNS))
        return summary_rows(self._snapshot.groups.table, lag_sums(self._snapshot.lag.table), *more)

    def statuses(self, groups: Sequence[str]) -> dict[str, Row]:
        found = self._snapshot.group_status
        if found is None:
            return {}
        return {group: found.of(group).to_pylist()[0] for group in groups if group in found}

    def group(self, group_id: str) -> Row | None:
        rows: list[Row] = self._snapshot.groups.of(group_id).to_pylist()
        return rows[0] if rows else None

    def lag(self, group_id: str) -> list[Row]:
        return with_decisions(self._snapshot.lag.of(group_id).to_pylist(), self.statuses([group_id]))

    def members(self, group_id: str) -> list[Row]:
        rows: list[Row] = self._snapshot.members.of(group_id).to_pylist()
        return rows

    def recent_ages(self, groups: Iterable[str], end: datetime) -> pa.Table:
        return self._recent_ages().of(groups, end)

    def _recent_ages(self) -> RecentAges:
        return self._ages.until(self._queries, self.batch, self._snapshot.lag_at)

    def query(self, sql: str) -> pa.Table:
        return self._queries.query(sql)

    def reopened(self) -> Query:
        return self._queries.reopened()
