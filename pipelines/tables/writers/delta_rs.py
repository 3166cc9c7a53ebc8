"""Writer of micro-batches, in the driver, without a Spark job (docs/adr/0003, docs/adr/0012).

delta-rs does the appends. Merges replace sorted files of the table; delta-rs merges tables without any, whose protocol another
program has raised.
"""

from collections.abc import Callable
from typing import Literal

import pyarrow as pa
from deltalake import DeltaTable

from pipelines.tables import definitions
from pipelines.tables.delta_writes import checkpoint_when_due, stamped, write_rows
from pipelines.tables.panic_reports import noted_panics
from pipelines.tables.sorted_files.sorted_files import ScannedRows, has_sorted_files
from pipelines.tables.store import is_in
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writers.sorted_merge import merge_sorted
from pipelines.tables.writers.table_write import TableWrite, merge_conditions


class DeltaRsWriter:
    """Merges, appends and replaces Arrow rows. `scanned_rows` returns the rows of a table that the plan of the batch has read."""

    def __init__(self, tables: TablesWriter, scanned_rows: Callable[[str], ScannedRows | None] = lambda _table: None) -> None:
        self._tables = tables
        self._scanned_rows = scanned_rows

    def write(self, write: TableWrite) -> int:
        """Apply `write`; see `Writer`."""
        if write.table in definitions.REPLACED:
            return self._tables.commit(write.table, lambda table, stamp: _put(table, write, stamp, "overwrite"))
        if not write.rows.num_rows:
            return self._tables.version(write.table)
        if not definitions.KEYS.get(write.table):
            return self._tables.commit(write.table, lambda table, stamp: _put(table, write, stamp, "append"))
        scanned_rows = self._scanned_rows(write.table)
        return self._tables.commit(write.table, lambda table, stamp: _merge(table, write, stamp, scanned_rows))


def _put(table: DeltaTable, write: TableWrite, stamp: str, mode: Literal["append", "overwrite"]) -> bool:
    write_rows(table, write.rows, mode, stamped(stamp))
    checkpoint_when_due(table)
    return True


def _merge(table: DeltaTable, write: TableWrite, stamp: str, scanned_rows: ScannedRows | None) -> bool:
    if has_sorted_files(table):
        return merge_sorted(table, write, stamp, scanned_rows)
    definition = definitions.table(write.table)
    columns = {name: f"s.{name}" for name in definition.schema.names}
    deleted, updated, inserted = merge_conditions(write.table)
    rows: pa.Table = write.rows
    same = " AND ".join(f"t.{name} = s.{name}" for name in definition.key)
    # with the literals delta-rs skips files without a match
    pruned = is_in(f"t.{definition.key[0]}", rows.column(definition.key[0]).unique().to_pylist())
    with noted_panics(table.table_uri):
        metrics = (
            table.merge(rows, f"{pruned} AND {same}", source_alias="s", target_alias="t", commit_properties=stamped(stamp))
            .when_matched_delete(deleted)
            .when_matched_update(columns, predicate=updated)
            .when_not_matched_insert(columns, predicate=inserted)
            .execute()
        )
    return bool(metrics["num_target_files_added"] or metrics["num_target_files_removed"])
