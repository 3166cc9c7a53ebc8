"""The open transaction that a position of a group waits for: of its own pending offset, or of records that hide the next one."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from pipelines.tables.store import Batch, literal

#: Partitions of open transactions, a row each.
OPEN_PARTITIONS = """
SELECT q.transactional_id, q.producer_id, q.state, q.start_timestamp,
       q.part['topic'] AS topic, unnest(q.part['partitions']) AS partition
FROM (SELECT transactional_id, producer_id, state, start_timestamp, unnest(partitions) AS part FROM transactions) q
"""
#: Positions at which the last stable offset ends, with the open transactions that have the partition.
_BLOCKED = f"""
SELECT l.group_id, l.topic, l.partition, t.transactional_id, t.producer_id
FROM lag l
JOIN ({OPEN_PARTITIONS}) t ON t.topic = l.topic AND t.partition = l.partition
WHERE l.blocked_by_transaction
"""

#: Group, topic and partition.
Position = tuple[str, str, int]


def blocking_transactions(
    query: Callable[[str], pa.Table], batch: Batch, groups: Sequence[str] = (), *, with_lag: bool = True
) -> dict[Position, list[str]]:
    """Names of open transactions by position; of all groups if none is named.

    A transaction is named by its transactional id, or by its producer if no id has it any more or transactions are not read.
    Without `with_lag`, only transactions with pending offsets: the table `lag` of an earlier batch may be removed.
    """
    where = f"WHERE b.group_id IN ({', '.join(map(literal, groups))})" if groups else ""
    found: dict[Position, set[str]] = {}
    for sql in _queries(batch, with_lag):
        for row in query(f"SELECT DISTINCT b.* FROM ({sql}) b {where}").to_pylist():
            found.setdefault((row["group_id"], row["topic"], row["partition"]), set()).add(_name(row))
    return {key: sorted(names) for key, names in found.items()}


def _queries(batch: Batch, with_lag: bool) -> list[str]:
    pending = f"SELECT group_id, topic, partition, transactional_id, producer_id FROM ({pending_offsets(batch)}) p"
    return [pending, _BLOCKED] if with_lag and batch.has_transactions and "lag" in batch.versions else [pending]


def pending_offsets(batch: Batch) -> str:
    """A query of `pending_offsets`, with `transactional_id` and `state` of the producer: null if unknown or not read."""
    if not batch.has_transactions:
        return "SELECT p.*, CAST(NULL AS STRING) AS transactional_id, CAST(NULL AS STRING) AS state FROM pending_offsets p"
    return """
SELECT p.*, t.transactional_id, t.state FROM pending_offsets p LEFT JOIN transactions t ON t.producer_id = p.producer_id
"""


def _name(row: dict[str, Any]) -> str:
    name: str | None = row["transactional_id"]
    return f"producer {row['producer_id']}" if name is None else name
