"""The open transaction that a position of a group waits for: of its own pending offset, or of records that hide the next one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import Int64s
from coordinator_core.health import NONE
from coordinator_core.health.sample_columns import integers
from pipelines.lag.columns import row_numbers, select
from pipelines.lag.tables.blocked_history import blocked_at
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import RemovedState
from pipelines.tables.store import Batch, is_in

#: Partitions of open transactions, a row each.
OPEN_PARTITIONS = """
SELECT q.transactional_id, q.producer_id, q.state, q.start_timestamp,
       q.part['topic'] AS topic, unnest(q.part['partitions']) AS partition
FROM (SELECT transactional_id, producer_id, state, start_timestamp, unnest(partitions) AS part FROM transactions) q
"""
#: Positions that an open transaction blocks, with the transaction that the sample found at the last stable offset.
_BLOCKED = """
SELECT group_id, topic, partition, blocked_by_transactional_id AS transactional_id, blocked_by_producer_id AS producer_id
FROM lag WHERE blocked_by_transaction
"""
#: The same for tables of a layout before 1.3.
_BLOCKED_UNNAMED = """
SELECT group_id, topic, partition, CAST(NULL AS STRING) AS transactional_id, CAST(NULL AS BIGINT) AS producer_id
FROM lag WHERE blocked_by_transaction
"""

_GREATEST_PENDING = """
SELECT group_id, topic, partition, max(committed_offset) AS pending_offset FROM pending_offsets
GROUP BY group_id, topic, partition
"""

#: Group, topic and partition.
Position = tuple[str, str, int]


def blocking_transactions(snapshot: Snapshot, groups: Sequence[str] = ()) -> dict[Position, list[str]]:
    """Names of open transactions by position; of all groups if none is named.

    A transaction is named by its transactional id, or by its producer if no id has it any more or transactions are not read. A
    position that one sample found blocked has the names of all open transactions of its partition.
    """
    named = is_in("group_id", groups) if groups else "TRUE"
    found: dict[Position, set[str]] = {}
    for row in snapshot.query(f"SELECT * FROM ({pending_offsets(snapshot.batch)}) p WHERE {named}").to_pylist():
        found.setdefault(_position(row), set()).add(_name(row))
    blocked = _blocked(snapshot, groups, named)
    candidates = _open_partitions(snapshot) if any(not names for names in blocked.values()) else {}
    for position, names in blocked.items():
        found.setdefault(position, set()).update(names or candidates.get(position[1:], ()))
    return {key: sorted(names) for key, names in found.items() if names}


def _blocked(snapshot: Snapshot, groups: Sequence[str], named: str) -> dict[Position, set[str]]:
    """Names of transactions by blocked position; no name if the sample has none."""
    if "lag" not in snapshot.batch.versions:
        return {}
    try:
        has_names = "blocked_since" in snapshot.query("SELECT * FROM lag LIMIT 0").column_names
        rows = snapshot.query(f"SELECT * FROM ({_BLOCKED if has_names else _BLOCKED_UNNAMED}) b WHERE {named}").to_pylist()
    except RemovedState:
        # the files of an earlier sample; its history remains
        newest = snapshot.newest()
        names = groups or snapshot.query("SELECT DISTINCT group_id FROM offsets")["group_id"].to_pylist()
        return {
            (group, partition.topic, partition.partition): _names(found._asdict())
            for group, partitions in blocked_at(newest, snapshot.batch.finished_at, names).items()
            for partition, found in partitions.items()
        }
    return {_position(row): _names(row) for row in rows}


def _open_partitions(snapshot: Snapshot) -> dict[tuple[str, int], set[str]]:
    if not snapshot.batch.has_transactions:
        return {}
    found: dict[tuple[str, int], set[str]] = {}
    for row in snapshot.query(OPEN_PARTITIONS).to_pylist():
        found.setdefault((row["topic"], row["partition"]), set()).add(_name(row))
    return found


def pending_offsets(batch: Batch) -> str:
    """A query of `pending_offsets`, with `transactional_id` and `state` of the producer: null if unknown or not read.

    `waits_since` is the start of the transaction that has the offset, or the time of its record if none is known to have it.
    """
    if not batch.has_transactions:
        return """
SELECT p.*, CAST(NULL AS STRING) AS transactional_id, CAST(NULL AS STRING) AS state, p.record_timestamp AS waits_since
FROM pending_offsets p
"""
    return f"""
SELECT p.*, t.transactional_id, t.state, COALESCE(o.start_timestamp, p.record_timestamp) AS waits_since
FROM pending_offsets p
LEFT JOIN transactions t ON t.producer_id = p.producer_id
LEFT JOIN ({OPEN_PARTITIONS}) o
  ON o.producer_id = p.producer_id AND o.topic = '__consumer_offsets' AND o.partition = p.log_partition
"""


def greatest_pending_offsets(snapshot: Snapshot, positions: pa.Table) -> Int64s:
    """The greatest offset that open transactions hold for each position; NONE for none."""
    pending = select(snapshot, _GREATEST_PENDING)
    found = np.full(positions.num_rows, NONE)
    row = row_numbers(pending, positions)
    found[row[row >= 0]] = integers(pending["pending_offset"])[row >= 0]
    return found


def _position(row: Mapping[str, Any]) -> Position:
    return row["group_id"], row["topic"], row["partition"]


def _names(row: Mapping[str, Any]) -> set[str]:
    return set() if row["transactional_id"] is None and row["producer_id"] is None else {_name(row)}


def _name(row: Mapping[str, Any]) -> str:
    name: str | None = row["transactional_id"]
    return f"producer {row['producer_id']}" if name is None else name
