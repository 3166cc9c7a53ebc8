"""Times of the last commit and the last rebalance of each group."""

import pyarrow as pa

from pipelines.dashboard.moments.kept_queries import KeptQueries
from pipelines.tables.store import Batch
from pipelines.timestamps import TIMESTAMP

_COMMITS = """
SELECT group_id, max(COALESCE(commit_timestamp, record_timestamp)) AS last_commit_at FROM offsets GROUP BY group_id
"""
_REBALANCES = """
SELECT group_id, max(record_timestamp) AS last_rebalance_at FROM membership_history
WHERE state <> 'Dead' AND generation <> COALESCE(previous_generation, -1)
AND (previous_generation IS NOT NULL OR member_count > 0) GROUP BY group_id
"""
_NO_REBALANCES = pa.schema([("group_id", pa.string()), ("last_rebalance_at", TIMESTAMP)])


def last_commits(queries: KeptQueries) -> pa.Table:
    """Time of the last commit of each group with offsets."""
    return queries.query(_COMMITS, keep=False)


def last_rebalances(queries: KeptQueries, batch: Batch) -> pa.Table:
    """Time of the record with the newest generation of each group in the history."""
    if "membership_history" not in batch.versions:
        # an earlier version of Grouplake wrote the batch
        return _NO_REBALANCES.empty_table()
    return queries.query(_REBALANCES, keep=False)
