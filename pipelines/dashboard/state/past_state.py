"""An earlier batch, from the tables at their versions then and from the histories."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import pyarrow as pa

from pipelines.dashboard.state.computed_statuses import ComputedStatuses
from pipelines.dashboard.state.moment import BatchState, Row
from pipelines.dashboard.state.partition_decisions import with_decisions
from pipelines.dashboard.state.past_lag import lag_times, past_lag
from pipelines.dashboard.state.query_cache import Query, QueryCache
from pipelines.dashboard.state.summary_rows import LAG_SUMS, STATUS_COLUMNS, summary_rows, topic_sums
from pipelines.dashboard.state.summary_times import last_commits, last_rebalances
from pipelines.lag.past.lag_at import recorded_lag
from pipelines.query.engine import Snapshot
from pipelines.query.snapshots.grouped_table import GroupedTable
from pipelines.runtime.errors import RemovedState
from pipelines.tables.store import literal

_GROUPS = "SELECT group_id, group_type, state, protocol, generation, member_count FROM groups"


class PastState(BatchState):
    """Answers from the tables at the batch; `newest` has the samples and the histories."""

    def __init__(self, snapshot: Snapshot, newest: Snapshot, queries: QueryCache) -> None:
        self.batch = snapshot.batch
        self._snapshot = snapshot
        self._newest = newest
        self._queries = queries
        self._lock = threading.Lock()
        self._computed = ComputedStatuses(newest, snapshot.batch)
        self._recorded = self._recorded_statuses()
        self._summaries, lag = self._loaded()
        self._sampled_at, self._read_until = lag_times(lag)

    @property
    def sampled_at(self) -> datetime | None:
        return self._sampled_at

    @property
    def commits_read_until(self) -> datetime:
        return self._read_until or self.batch.finished_at

    @property
    def nbytes(self) -> int:
        """Bytes of the rows in memory."""
        recorded = 0 if self._recorded is None else self._recorded.table.nbytes
        return int(self._summaries.nbytes + recorded) + self._computed.nbytes + self._queries.nbytes

    def summaries(self) -> pa.Table:
        return self._summaries

    def _loaded(self) -> tuple[pa.Table, pa.Table | None]:
        """The summaries, and the rows of lag."""
        more = [last_commits(self._queries), last_rebalances(self._queries, self.batch)]
        if self._recorded is not None:
            more.append(self._recorded.table.select(STATUS_COLUMNS))
        groups = self._queries.query(_GROUPS, keep=False)
        if "lag_history" not in self.batch.versions:
            return summary_rows(groups, LAG_SUMS.empty_table(), *more), None
        lag = past_lag(self._queries, self.batch, groups["group_id"])
        return summary_rows(groups, topic_sums(lag), *more), lag

    def _recorded_statuses(self) -> GroupedTable | None:
        """The statuses of the last sample, as long as its files exist; None before the first sample too."""
        if "group_status" not in self.batch.versions:
            return None
        with suppress(RemovedState):
            rows = self._queries.query("SELECT * FROM group_status", keep=False)
            return GroupedTable(rows) if rows.num_rows else None
        return None

    def statuses(self, groups: Sequence[str]) -> dict[str, Row]:
        if self._recorded is not None:
            return {group: self._recorded.of(group).to_pylist()[0] for group in groups if group in self._recorded}
        return self._computed.of(groups)

    def group(self, group_id: str) -> Row | None:
        rows = self._rows_of("groups", group_id)
        return rows[0] if rows else None

    def lag(self, group_id: str) -> list[Row]:
        with self._lock:
            rows = recorded_lag(self._snapshot, self._newest, [group_id]).to_pylist()
        return with_decisions(rows, self.statuses([group_id]))

    def members(self, group_id: str) -> list[Row]:
        return self._rows_of("members", group_id, "ORDER BY member_id")

    def _rows_of(self, table: str, group_id: str, order: str = "") -> list[Row]:
        rows: list[Row] = self.query(f"SELECT * FROM {table} WHERE group_id = {literal(group_id)} {order}").to_pylist()
        return rows

    def query(self, sql: str) -> pa.Table:
        return self._queries.query(sql)

    def reopened(self) -> Query:
        return self._queries.reopened()
