"""Reads the tables of a batch into memory. A table whose version did not change keeps its object."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import pyarrow as pa

from pipelines.query.engine import Snapshot
from pipelines.query.positions import POSITIONS
from pipelines.query.snapshots.grouped_table import GroupedTable
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.query.snapshots.transactions_summary import TransactionsSummary, summarize_transactions
from pipelines.runtime.timestamps import TIMESTAMP
from pipelines.tables.store import Batch, TableStore

T = TypeVar("T")

#: Number of batches whose phases and times are loaded.
_RECENT = 50

#: Phase that only maintenance batches have.
_MAINTAIN_PHASE = "age"

_LAG_KEY = ("topic", "partition")
#: Tables from which the positions of groups follow, for tables without samples.
_POSITION_TABLES = ("offsets", "pending_offsets", "groups", "members", "topic_ids")

#: Columns of `lag` that are unknown without samples.
_UNSAMPLED: dict[str, tuple[Any, pa.DataType]] = {
    **dict.fromkeys(("latest_offset", "earliest_offset", "lag", "data_lag", "messages_lost"), (None, pa.int64())),
    **dict.fromkeys(
        (
            "lag_seconds",
            "lag_seconds_low",
            "lag_seconds_high",
            "lag_slope_per_second",
            "stuck_seconds",
            "drain_seconds",
            "retention_margin_seconds",
            "slope_window_seconds",
            "produce_rate",
            "consume_rate",
        ),
        (None, pa.float64()),
    ),
    "blocked_by_transaction": (None, pa.bool_()),
    "lag_method": ("none", pa.string()),
    "lag_reason": ("no_sample", pa.string()),
    "sampled_at": (None, TIMESTAMP),
    "falls_behind_since": (None, TIMESTAMP),
    "falls_behind_since_is_latest": (None, pa.bool_()),
    "committed_at": (None, TIMESTAMP),
}


@dataclass(frozen=True)
class _Loaded:
    versions: tuple[int | None, ...]
    value: Any


class SnapshotLoader:
    """Loads the snapshots of one folder of tables. For one thread at a time."""

    def __init__(self, cluster: str, root: str) -> None:
        self._cluster = cluster
        self._store = TableStore(root)
        self._loaded: dict[str, _Loaded] = {}
        self._last: Batch | None = None
        #: Folder and version of `batches` that `_last` was read from.
        self._seen = ("", -1)
        #: Newest batch that was searched for maintenance, and the result.
        self._maintained: tuple[int, datetime | None] = (-1, None)

    def last_batch(self) -> Batch | None:
        """The newest complete batch; None before the first, and while the tables do not exist."""
        if self._last is None and not self._store.exists():
            return None
        batches = self._store.table("batches")
        seen = (self._store.root, batches.version())
        if seen != self._seen:
            if seen[0] != self._seen[0]:
                # rebuilt tables have versions of their own
                self._loaded.clear()
            self._last = self._store.last_batch_of(batches)
            self._seen = seen
        return self._last

    def load(self, batch: Batch) -> MemorySnapshot:
        """Read the tables of this batch."""
        snapshot = Snapshot(self._store, batch)
        return MemorySnapshot(
            cluster=self._cluster,
            batch=batch,
            recent=self._recent(snapshot),
            lag=self._lag(snapshot),
            groups=self._grouped(snapshot, "groups"),
            members=self._grouped(snapshot, "members", "member_id"),
            quarantine_rows=self._table(snapshot, "quarantine", lambda: _count(snapshot, "quarantine")),
            maintained_at=self._maintenance(snapshot),
            group_status=self._grouped(snapshot, "group_status") if "group_status" in batch.versions else None,
            partition_status=(
                self._grouped(snapshot, "partition_status", *_LAG_KEY) if "partition_status" in batch.versions else None
            ),
            brokers=self._optional(snapshot, "brokers"),
            topic_partitions=self._optional(snapshot, "topic_partitions"),
            share_offsets=self._optional(snapshot, "share_offsets"),
            transactions=self._transactions(snapshot),
        )

    def _transactions(self, snapshot: Snapshot) -> TransactionsSummary | None:
        if snapshot.batch.transaction_offsets is None:
            return None
        return self._table(snapshot, "transactions", lambda: summarize_transactions(snapshot.query))

    def _lag(self, snapshot: Snapshot) -> GroupedTable:
        """The table `lag`; before the first sample the positions, with unknown ends."""
        if "lag" in snapshot.batch.versions:
            lag = self._grouped(snapshot, "lag", *_LAG_KEY)
            if len(lag):
                return lag
        return self._value(snapshot, "positions", _POSITION_TABLES, lambda: _unsampled_lag(snapshot))

    def _grouped(self, snapshot: Snapshot, name: str, *key: str) -> GroupedTable:
        return self._table(snapshot, name, lambda: GroupedTable(snapshot.query(f"SELECT * FROM {name}"), *key))

    def _optional(self, snapshot: Snapshot, name: str) -> pa.Table | None:
        if name not in snapshot.batch.versions:
            return None
        return self._table(snapshot, name, lambda: snapshot.query(f"SELECT * FROM {name}"))

    def _table(self, snapshot: Snapshot, name: str, load: Callable[[], T]) -> T:
        return self._value(snapshot, name, (name,), load)

    def _value(self, snapshot: Snapshot, name: str, sources: tuple[str, ...], load: Callable[[], T]) -> T:
        """Return what `load` made of tables of these versions, without a load if they are those of the last one."""
        versions = tuple(snapshot.batch.versions.get(source) for source in sources)
        loaded = self._loaded.get(name)
        if loaded is None or loaded.versions != versions:
            loaded = self._loaded[name] = _Loaded(versions, load())
        value: T = loaded.value
        return value

    def _maintenance(self, snapshot: Snapshot) -> datetime | None:
        """Completion of the newest maintenance batch. No batch is read twice."""
        looked_at, newest = self._maintained
        new = f"batch_id > {looked_at} AND phase_ms['{_MAINTAIN_PHASE}'] IS NOT NULL"
        rows = snapshot.query(f"SELECT max(finished_at) AS at FROM batches WHERE {new}")
        newest = rows["at"][0].as_py() or newest
        self._maintained = snapshot.batch.batch_id, newest
        return newest

    def _recent(self, snapshot: Snapshot) -> tuple[Batch, ...]:
        first = snapshot.batch.batch_id - _RECENT
        rows = snapshot.query(f"SELECT * FROM batches WHERE batch_id > {first} ORDER BY batch_id DESC").to_pylist()
        return tuple(Batch.from_row(row) for row in rows)


def _count(snapshot: Snapshot, name: str) -> int:
    rows: int = snapshot.query(f"SELECT count(*) AS n FROM {name}")["n"][0].as_py()
    return rows


def _unsampled_lag(snapshot: Snapshot) -> GroupedTable:
    return GroupedTable(_unsampled(snapshot.query(POSITIONS), snapshot.batch), *_LAG_KEY)


def _unsampled(positions: pa.Table, batch: Batch) -> pa.Table:
    """Positions with the columns of `lag`."""
    rows = positions.drop_columns(["commit_timestamp", "topic_id"])
    rows = rows.rename_columns(["group_offset" if name == "committed_offset" else name for name in rows.column_names])
    count = rows.num_rows
    for name, (value, kind) in _UNSAMPLED.items():
        rows = rows.append_column(name, pa.repeat(pa.scalar(value, kind), count))
    rows = rows.append_column("commits_read_until", pa.repeat(pa.scalar(batch.finished_at, TIMESTAMP), count))
    return rows.append_column("batch_id", pa.repeat(pa.scalar(batch.batch_id, pa.int64()), count))
