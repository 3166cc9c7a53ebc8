"""A batch whose tables `maintain` has removed, from the histories: what they do not have is null."""

import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.moments.computed_statuses import ComputedStatuses
from pipelines.dashboard.moments.kept_queries import KeptQueries, Query
from pipelines.dashboard.moments.moment import BatchState, Row
from pipelines.dashboard.moments.partition_decisions import with_decisions
from pipelines.dashboard.moments.past_lag import past_lag
from pipelines.dashboard.moments.summary_rows import LAG_SUMS, summary_rows, topic_sums
from pipelines.dashboard.moments.summary_times import last_rebalances
from pipelines.errors import RemovedState, UsageError
from pipelines.lag.lag_at import lag_of_positions
from pipelines.query.earlier_state import earlier_state
from pipelines.query.engine import PUBLIC, Snapshot
from pipelines.query.plain_strings import plain_strings
from pipelines.tables import definitions
from pipelines.tables.store import Batch, literal, timestamp_literal

#: Type and assignor of each group by its last record until the batch, otherwise as they are now.
_TYPES = """
SELECT COALESCE(h.group_id, g.group_id) AS group_id, COALESCE(h.group_type, g.group_type) AS group_type,
       COALESCE(h.protocol, g.protocol) AS protocol
FROM groups g FULL JOIN (
  SELECT group_id, group_type, protocol, row_number() OVER (PARTITION BY group_id ORDER BY batch_id DESC, log_offset DESC) AS age
  FROM membership_history WHERE batch_id <= {batch}
) h ON h.group_id = g.group_id WHERE h.age IS NULL OR h.age = 1
"""
_COMMITS = """
SELECT group_id, max(COALESCE(commit_timestamp, record_timestamp)) AS last_commit_at FROM offset_history
WHERE committed_offset IS NOT NULL GROUP BY group_id
"""
_OWNERS = """
SELECT topic, partition, member_id AS consumer_id, client_host AS member_host, client_id FROM ownership
WHERE group_id = {group} AND topic IS NOT NULL AND (since IS NULL OR since <= {at}) AND (until IS NULL OR until > {at})
"""
_POSITION = ("consumer_id", "member_host", "client_id", "committed_offset", "commit_timestamp", "topic_id")


class HistoryState(BatchState):
    """`histories` has the rows until the batch, `newest` the tables from which earlier states are derived."""

    def __init__(self, batch: Batch, newest: Snapshot, histories: KeptQueries) -> None:
        """Raises RemovedState if the histories do not reach back to the batch."""
        self.batch = batch
        self._newest = newest
        self._histories = histories
        self._lock = threading.Lock()
        self._computed = ComputedStatuses(newest, batch)
        try:
            self._parts = earlier_state(newest, PUBLIC, batch)
        except UsageError as error:
            raise RemovedState(
                f"batch {batch.batch_id} can no longer be read: `grouplake maintain` has removed its files "
                "(maintain.vacuum_hours), and the histories start later (maintain.history_days)"
            ) from error
        self._summaries, self._sampled_at = self._loaded()

    def _loaded(self) -> tuple[pa.Table, datetime | None]:
        groups = self._derived("groups")
        lag = None
        if "lag_history" in self.batch.versions:
            lag = past_lag(self._histories, self.batch, groups["group_id"])
        more = (
            plain_strings(self._newest.query(_TYPES.format(batch=self.batch.batch_id))),
            self._histories.query(_COMMITS, keep=False),
            last_rebalances(self._histories, self.batch),
        )
        sums = LAG_SUMS.empty_table() if lag is None else topic_sums(lag)
        return summary_rows(groups, sums, *more), None if lag is None else pc.max(lag["sampled_at"]).as_py()

    def _derived(self, part: str, group: str | None = None) -> pa.Table:
        named = "" if group is None else f" WHERE group_id = {literal(group)}"
        return plain_strings(self._newest.query(f"SELECT * FROM ({self._parts[part]}) p{named}"))

    @property
    def sampled_at(self) -> datetime | None:
        return self._sampled_at

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
            at = timestamp_literal(self.batch.finished_at)
            owners = self._newest.query(_OWNERS.format(group=literal(group_id), at=at)).to_pylist()
            commits = self._derived("offsets", group_id).to_pylist()
            positions = _positions(group_id, commits, owners)
            rows = lag_of_positions(positions, self._newest, self.batch.finished_at).to_pylist()
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


def _positions(group_id: str, commits: list[Row], owners: list[Row]) -> list[Row]:
    """Rows like POSITIONS, by topic and partition, from commits and owners."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in (*commits, *owners):
        key = row["topic"], row["partition"]
        empty = {"group_id": group_id, "topic": key[0], "partition": key[1], **dict.fromkeys(_POSITION)}
        found[key] = {**found.get(key, empty), **row}
    return [found[key] for key in sorted(found)]
