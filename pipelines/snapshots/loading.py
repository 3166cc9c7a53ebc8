"""Reads the tables of a batch into memory. A table whose version did not change keeps its object."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from pipelines.lag.positions import POSITIONS
from pipelines.query.engine import Snapshot
from pipelines.snapshots.grouped_table import GroupedTable
from pipelines.snapshots.memory_snapshot import MemorySnapshot
from pipelines.tables.store import Batch, TableStore
from pipelines.timestamps import TIMESTAMP

#: Number of batches whose phases and times are loaded.
_RECENT = 50

_LAG_KEY = ("topic", "partition")
#: Tables from which the positions of groups follow, for tables without samples.
_POSITION_TABLES = ("offsets", "pending_offsets", "groups", "members", "topic_ids")
_MEMBERS = """
SELECT group_id, member_id, group_instance_id, client_id, client_host, member_epoch, member_state, assigned, target FROM members
"""

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
        ),
        (None, pa.float64()),
    ),
    "blocked_by_transaction": (None, pa.bool_()),
    "lag_method": ("none", pa.string()),
    "lag_reason": ("no_sample", pa.string()),
    "sampled_at": (None, TIMESTAMP),
}


@dataclass(frozen=True)
class _Loaded:
    versions: tuple[int | None, ...]
    value: Any


class SnapshotLoader:
    """Loads the snapshots of one folder of tables. For one thread at a time."""

    def __init__(self, cluster: str, root: str, optional: Mapping[str, str] | None = None) -> None:
        """`optional` has further tables to load, each with its query."""
        self._cluster = cluster
        self._store = TableStore(root)
        self._optional = dict(optional or {})
        self._loaded: dict[str, _Loaded] = {}
        self._last: Batch | None = None
        self._batches_version = -1

    def last_batch(self) -> Batch | None:
        """The newest complete batch; None before the first, and while the tables do not exist."""
        if self._last is None and not self._store.exists():
            return None
        batches = self._store.table("batches")
        if batches.version() != self._batches_version:
            self._last = self._store.last_batch_of(batches)
            self._batches_version = batches.version()
        return self._last

    def load(self, batch: Batch) -> MemorySnapshot:
        """Read the tables of this batch."""
        snapshot = Snapshot(self._store, batch)
        lag = self._table(snapshot, "lag", ("lag",), lambda: _sampled_lag(snapshot))
        if not lag.table.num_rows:
            lag = self._table(snapshot, "positions", _POSITION_TABLES, lambda: _unsampled_lag(snapshot))
        return MemorySnapshot(
            cluster=self._cluster,
            batch=batch,
            recent=self._recent(snapshot),
            lag=lag,
            groups=self._table(snapshot, "groups", ("groups",), lambda: GroupedTable(_plain(snapshot, "SELECT * FROM groups"))),
            members=self._table(snapshot, "members", ("members",), lambda: GroupedTable(_plain(snapshot, _MEMBERS), "member_id")),
            quarantine_rows=self._table(
                snapshot,
                "quarantine",
                ("quarantine",),
                lambda: snapshot.query("SELECT count(*) AS n FROM quarantine")["n"][0].as_py(),
            ),
            optional={
                name: self._table(snapshot, name, (name,), partial(_plain, snapshot, sql))
                for name, sql in self._optional.items()
                if name in batch.versions
            },
        )

    def _table(self, snapshot: Snapshot, name: str, sources: tuple[str, ...], load: Callable[[], Any]) -> Any:
        versions = tuple(snapshot.batch.versions.get(source) for source in sources)
        loaded = self._loaded.get(name)
        if loaded is None or loaded.versions != versions:
            loaded = self._loaded[name] = _Loaded(versions, load())
        return loaded.value

    def _recent(self, snapshot: Snapshot) -> tuple[Batch, ...]:
        first = snapshot.batch.batch_id - _RECENT
        rows = snapshot.query(f"SELECT * FROM batches WHERE batch_id > {first} ORDER BY batch_id DESC").to_pylist()
        return tuple(Batch.from_row(row) for row in rows)


def _sampled_lag(snapshot: Snapshot) -> GroupedTable:
    if "lag" not in snapshot.batch.versions:
        return GroupedTable(_unsampled(_plain(snapshot, POSITIONS).slice(0, 0), snapshot.batch), *_LAG_KEY)
    return GroupedTable(_plain(snapshot, "SELECT * FROM lag"), *_LAG_KEY)


def _unsampled_lag(snapshot: Snapshot) -> GroupedTable:
    return GroupedTable(_unsampled(_plain(snapshot, POSITIONS), snapshot.batch), *_LAG_KEY)


def _unsampled(positions: pa.Table, batch: Batch) -> pa.Table:
    """Positions with the columns of `lag`."""
    rows = positions.rename_columns({"committed_offset": "group_offset"}).drop_columns(["commit_timestamp", "topic_id"])
    count = rows.num_rows
    for name, (value, kind) in _UNSAMPLED.items():
        rows = rows.append_column(name, pa.repeat(pa.scalar(value, kind), count))
    rows = rows.append_column("commits_read_until", pa.repeat(pa.scalar(batch.finished_at, TIMESTAMP), count))
    return rows.append_column("batch_id", pa.repeat(pa.scalar(batch.batch_id, pa.int64()), count))


def _plain(snapshot: Snapshot, sql: str) -> pa.Table:
    """The rows of a query. DataFusion returns views of strings, which Arrow cannot sort."""
    rows = snapshot.query(sql)
    return rows.cast(pa.schema([field.with_type(_without_views(field.type)) for field in rows.schema]))


def _without_views(kind: pa.DataType) -> pa.DataType:
    if kind == pa.string_view():
        return pa.string()
    if kind == pa.binary_view():
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_views(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    return kind
