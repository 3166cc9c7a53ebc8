"""A batch whose tables `maintain` has removed, from the histories: what they do not have is null."""

import threading
from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.state.computed_statuses import ComputedStatuses
from pipelines.dashboard.state.moment import BatchState, Row
from pipelines.dashboard.state.partition_decisions import with_decisions
from pipelines.dashboard.state.past_lag import lag_times, past_lag
from pipelines.dashboard.state.query_cache import Query, QueryCache
from pipelines.dashboard.state.summary_rows import LAG_SUMS, summary_rows, topic_sums
from pipelines.dashboard.state.summary_times import last_rebalances
from pipelines.lag.past.derived_positions import derived_state
from pipelines.lag.past.lag_at import lag_at
from pipelines.query.engine import Snapshot
from pipelines.query.histories import IS_CHANGE
from pipelines.tables import definitions
from pipelines.tables.store import Batch, literal

#: Type and assignor of each group by its last record until the batch, otherwise as they are now.
_TYPES = """
SELECT COALESCE(h.group_id, g.group_id) AS group_id, COALESCE(h.group_type, g.group_type) AS group_type,
       COALESCE(h.protocol, g.protocol) AS protocol
FROM groups g FULL JOIN (
  SELECT group_id, group_type, protocol, row_number() OVER (PARTITION BY group_id ORDER BY batch_id DESC, log_offset DESC) AS age
  FROM membership_history WHERE batch_id <= {batch}
) h ON h.group_id = g.group_id WHERE h.age IS NULL OR h.age = 1
"""
_COMMITS = f"""
SELECT group_id, max(COALESCE(commit_timestamp, record_timestamp)) AS last_commit_at FROM offset_history
WHERE {IS_CHANGE} AND committed_offset IS NOT NULL GROUP BY group_id
"""


class HistoryState(BatchState):
    """`histories` has the rows until the batch, `newest` the tables from which earlier states are derived."""

    is_derived = True

    def __init__(self, batch: Batch, newest: Snapshot, histories: QueryCache) -> None:
        """Raises RemovedState if the histories do not reach back to the batch."""
        self.batch = batch
        self._newest = newest
        self._histories = histories
        self._lock = threading.Lock()
        self._computed = ComputedStatuses(newest, batch)
        self._parts = derived_state(newest, batch)
        self._summaries, lag = self._loaded()
        self._sampled_at, self._read_until = lag_times(lag)

    def _loaded(self) -> tuple[pa.Table, pa.Table | None]:
        """The summaries, and the rows of lag."""
        groups = self._derived("groups")
        lag = None
        if "lag_history" in self.batch.versions:
            lag = past_lag(self._histories, self.batch, groups["group_id"])
        more = (
            self._newest.query(_TYPES.format(batch=self.batch.batch_id)),
            self._histories.query(_COMMITS, keep=False),
            last_rebalances(self._histories, self.batch),
        )
        sums = LAG_SUMS.empty_table() if lag is None else topic_sums(lag)
        return summary_rows(groups, sums, *more), lag

    def _derived(self, part: str, group: str | None = None) -> pa.Table:
        named = "" if group is None else f" WHERE group_id = {literal(group)}"
        return self._newest.query(f"SELECT * FROM ({self._parts[part]}) p{named}")

    @property
    def sampled_at(self) -> datetime | None:
        return self._sampled_at

    @property
    def commits_read_until(self) -> datetime:
        return self._read_until or self.batch.finished_at

    @property
    def nbytes(self) -> int:
        """Bytes of the rows in memory."""
        return int(self._summaries.nbytes) + self._computed.nbytes + self._histories.nbytes

    def summaries(self) -> pa.Table:
        return self._summaries

    def statuses(self, groups: Sequence[str]) -> dict[str, Row]:
        return self._computed.of(groups)

    def group(self, group_id: str) -> Row | None:
        found = self._summaries.filter(pc.equal(self._summaries["group_id"], group_id)).to_pylist()
        return _row_of("groups", found[0]) if found else None

    def lag(self, group_id: str) -> list[Row]:
        with self._lock:
            rows = lag_at(self._newest, self.batch.batch_id, [group_id]).to_pylist()
        return with_decisions(rows, self.statuses([group_id]))

    def members(self, group_id: str) -> list[Row]:
        with self._lock:
            found = self._derived("members", group_id).sort_by("member_id").to_pylist()
        return [_row_of("members", row) for row in found]

    def query(self, sql: str) -> pa.Table:
        return self._histories.query(sql)

    def reopened(self) -> Query:
        return self._histories.reopened()


def _row_of(table: str, known: Row) -> Row:
    return {name: known.get(name) for name in definitions.table(table).schema.names}
