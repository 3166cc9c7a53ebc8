"""Times of the last commit and the last rebalance of each group."""

import threading

import pyarrow as pa

from pipelines.dashboard.state.query_cache import QueryCache
from pipelines.query.rebalances import IS_REBALANCE
from pipelines.runtime.timestamps import TIMESTAMP
from pipelines.tables.store import Batch

_COMMITS = """
SELECT group_id, max(COALESCE(commit_timestamp, record_timestamp)) AS last_commit_at FROM offsets GROUP BY group_id
"""
_REBALANCES = f"""
SELECT group_id, max(record_timestamp) AS last_rebalance_at FROM membership_history
WHERE batch_id > {{after}} AND {IS_REBALANCE} GROUP BY group_id
"""
_SCHEMA = pa.schema([("group_id", pa.string()), ("last_rebalance_at", TIMESTAMP)])


def last_commits(queries: QueryCache) -> pa.Table:
    """Time of the last commit of each group with offsets."""
    return queries.query(_COMMITS, keep=False)


def last_rebalances(queries: QueryCache, batch: Batch, after: int = -1) -> pa.Table:
    """Time of the record with the newest generation of each group, from the history after a batch."""
    if "membership_history" not in batch.versions:
        # an earlier version of Grouplake wrote the batch
        return _SCHEMA.empty_table()
    return queries.query(_REBALANCES.format(after=after), keep=False)


class NewestRebalances:
    """The same for one newest batch after the other, without reading the history twice. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batch_id = -1
        self._times = _SCHEMA.empty_table()

    def until(self, queries: QueryCache, batch: Batch) -> pa.Table:
        """Times until a batch; those of a later batch if it was asked for before."""
        with self._lock:
            if batch.batch_id > self._batch_id:
                found = last_rebalances(queries, batch, self._batch_id).cast(_SCHEMA)
                both = pa.concat_tables([self._times, found]).group_by("group_id").aggregate([("last_rebalance_at", "max")])
                self._times = both.rename_columns(["group_id", "last_rebalance_at"])
                self._batch_id = batch.batch_id
            return self._times
