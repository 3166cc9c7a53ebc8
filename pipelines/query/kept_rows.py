"""Rows of queries that are kept from one batch to the next.

A batch changes few of the tables, and a query of small tables takes longer to plan than to run.
"""

from typing import NamedTuple

import pyarrow as pa

from pipelines.query.engine import Snapshot
from pipelines.tables.store import Batch, TableStore

#: Results with more rows are not kept: for that many, the plan is a small part of a query, and the rows would stay in memory.
_MOST_ROWS = 100_000


class _KeptResult(NamedTuple):
    """The rows of a statement, and what it has read (see `Snapshot.read_by`)."""

    read: set[tuple[str, str | int]]
    rows: pa.Table


class KeptRows:
    """Results of the statements of the last two snapshots of a store. For one thread at a time."""

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._before: dict[str, _KeptResult] = {}
        self._kept: dict[str, _KeptResult] = {}
        self._batch_id = -1

    @property
    def root(self) -> str:
        """The folder of the tables."""
        return self._store.root

    def snapshot(self, batch: Batch) -> Snapshot:
        """The tables at a batch. Results of statements that were not repeated at the batch before are forgotten."""
        if batch.batch_id != self._batch_id:
            self._batch_id, self._before, self._kept = batch.batch_id, self._kept, {}
        return _KeepingSnapshot(self._store, batch, self)

    def rows(self, sql: str, snapshot: "_KeepingSnapshot") -> pa.Table:
        """The rows of a statement, read only if they may have changed."""
        read = snapshot.read_by(sql)
        kept = self._kept.get(sql) or self._before.get(sql)
        if kept is None or kept.read != read:
            kept = _KeptResult(read, snapshot.read(sql))
        if kept.rows.num_rows <= _MOST_ROWS:
            self._kept[sql] = kept
        return kept.rows


class _KeepingSnapshot(Snapshot):
    """A snapshot whose queries return rows that are known, if there are any."""

    def __init__(self, store: TableStore, batch: Batch, kept: KeptRows) -> None:
        super().__init__(store, batch)
        self._kept = kept

    def query(self, sql: str) -> pa.Table:
        """The rows of one reading statement; raises as that of a snapshot does."""
        return self._kept.rows(sql, self)

    def read(self, sql: str) -> pa.Table:
        """The same rows, read now."""
        return super().query(sql)
