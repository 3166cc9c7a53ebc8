"""Tables at the versions of the last complete batch.

A batch that is applied again after a crash must plan the same writes, so it may read only the state before it: every read is
pinned to the versions in the last `batches` row.
"""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from coordinator_core.log.partition_count import KeyPlace
from pipelines.tables import definitions
from pipelines.tables.sorted_files.sorted_files import ScannedRows, find_rows, has_sorted_files, matched_columns, sorted_files_of
from pipelines.tables.store import MAX_LITERALS, Batch, TableStore, is_in, query
from pipelines.tables.table_files import files_of

_TOPIC_ID = "part['topic_id']"


class PreviousBatch:
    """Reads tables at the versions of `batch`; before the first batch every table is empty."""

    def __init__(self, store: TableStore, batch: Batch | None) -> None:
        self._store = store
        self.batch = batch
        self._scanned: dict[str, ScannedRows] = {}

    def rows(self, table: str, columns: Iterable[str], **values: Iterable[object]) -> pa.Table:
        """Read `columns` of the rows of `table` whose columns in `values` have one of the given values."""
        names = list(columns)
        schema = definitions.table(table).schema
        if self.batch is None:
            return pa.schema([schema.field(name) for name in names]).empty_table()
        wanted = {column: list(set(given)) for column, given in values.items()}
        if list(wanted) == schema.names[:1] and has_sorted_files(pinned := self.table(table)):
            return self._from_sorted_files(table, pinned, wanted[schema.names[0]], names).select(names)
        conditions = " AND ".join(is_in(column, given) for column, given in wanted.items()) or "TRUE"
        selected = sorted({*names, *wanted})
        found = query({table: self.table(table)}, f"SELECT {', '.join(selected)} FROM {table} WHERE {conditions}")
        for column, given in wanted.items():
            if len(given) > MAX_LITERALS:
                found = found.filter(pc.is_in(found[column], pa.array(given, schema.field(column).type)))
        return found.select(names).cast(pa.schema([schema.field(name).with_nullable(True) for name in names]))

    @property
    def log_partition_count(self) -> int | None:
        """Partitions of `__consumer_offsets` by which groups were placed; None if unknown."""
        return self.batch.log_partition_count if self.batch else None

    @property
    def transaction_partition_count(self) -> int | None:
        """Partitions of `__transaction_state` by which transactional ids were placed; None if unknown."""
        return self.batch.transaction_partition_count if self.batch else None

    def places(self, table: str, key: str) -> set[KeyPlace]:
        """The values of column `key`, with the log partitions of their rows."""
        if self.batch is None or table not in self.batch.versions:
            return set()
        found = query({table: self.table(table)}, f"SELECT DISTINCT {key}, log_partition FROM {table}")
        return {KeyPlace(*pair) for pair in zip(found[key].to_pylist(), found["log_partition"].to_pylist(), strict=True)}

    def scanned_rows(self, table: str) -> ScannedRows | None:
        """Rows last read from `table`, which the merge does not read again; None for a table without sorted files."""
        return self._scanned.get(table)

    def _from_sorted_files(self, table: str, pinned: DeltaTable, firsts: list[Any], names: list[str]) -> pa.Table:
        schema, ordered = definitions.table(table).schema, sorted(firsts)
        read = {*names, *matched_columns(table)}
        columns = pa.schema([field.with_nullable(True) for field in schema if field.name in read])
        sorted_files = [sorted_file for sorted_file in sorted_files_of(pinned) if sorted_file.may_hold(ordered)]
        found = find_rows(files_of(pinned.table_uri), sorted_files, columns, pa.array(ordered, columns.field(0).type))
        self._scanned[table] = ScannedRows(frozenset(firsts), {one.sorted_file.path: one for one in found})
        return pa.concat_tables([columns.empty_table(), *(one.rows for one in found)])

    def groups_waiting_for(self, topic_ids: Iterable[str]) -> list[str]:
        """Groups with members whose assignment has one of the topic ids without a name."""
        wanted = list(topic_ids)
        if self.batch is None or not wanted:
            return []
        parts = " UNION ALL ".join(
            f"SELECT group_id, unnest({column}) AS part FROM members WHERE {column} IS NOT NULL"
            for column in ("assigned", "target")
        )
        condition = f"part['topic'] IS NULL AND {is_in(_TOPIC_ID, wanted)}"
        sql = f"SELECT DISTINCT group_id FROM ({parts}) parts WHERE {condition}"
        groups: list[str] = query({"members": self.table("members")}, sql)["group_id"].to_pylist()
        return groups

    def version(self, table: str) -> int:
        """Version of `table` in the last batch, 0 before the first."""
        return self.batch.versions.get(table, 0) if self.batch else 0

    def table(self, table: str) -> DeltaTable:
        """Return `table` at its version in the last batch, only to be read."""
        newest = self._store.table(table)
        version = self.version(table)
        return newest if newest.version() == version else self._store.at(table, version)
