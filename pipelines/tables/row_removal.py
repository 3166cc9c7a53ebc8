"""Removal of rows from append-only tables, in commits that readers can stream across.

A file with rows to remove is replaced by one with its other rows. By Delta's protocol such a commit removes rows (`dataChange` of
the `remove` is true) and adds none (that of the `add` is false), since the other rows are in the removed file. So a stream of
Spark with the option `ignoreDeletes` goes on, and reads no row again. delta-rs' `delete` and `overwrite` declare every added file
as new rows, which ends a stream (DELTA_SOURCE_TABLE_IGNORE_CHANGES, docs/adr/0068). A change data feed has to list the removed
rows, so with one delta-rs writes.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable

from pipelines.runtime.timestamps import TIMESTAMP
from pipelines.tables import definitions
from pipelines.tables.added_file import FileStatistics, add_action
from pipelines.tables.damage import damaged_tables
from pipelines.tables.delta_writes import delete_rows, stamped
from pipelines.tables.sorted_files.change_files import has_change_data_feed
from pipelines.tables.sorted_files.encodings import encodings
from pipelines.tables.sorted_files.sorted_files import FEWER_ROWS, SortedFile, replace_files
from pipelines.tables.store import timestamp_literal
from pipelines.tables.table_files import TableFiles, files_of

#: Rows of a row group: the size of a file is looked at after each.
_GROUP_ROWS = 100_000


def remove_older(table: DeltaTable, name: str, column: str, oldest: datetime, stamp: str, file_bytes: int) -> bool:
    """Remove the rows with a time before `oldest` in a column; False if there are none. Raises as `remove_rows` does."""
    if has_change_data_feed(table):
        return delete_rows(table, f"{column} < {timestamp_literal(oldest)}", stamped(stamp)) > 0
    return remove_rows(table, name, pc.field(column) < pa.scalar(oldest, TIMESTAMP), stamp, file_bytes)


def remove_rows(table: DeltaTable, name: str, is_removed: ds.Expression, stamp: str, file_bytes: int) -> bool:
    """Remove the rows for which an expression is true; False if there are none. Only files with such rows are replaced.

    Raises:
        CommitConflict: the table has a newer version than `table`; it was not changed.
        DamagedTables: a file of the table is missing or damaged.
    """
    present = {file.path: file for file in _files(table)}
    schema = definitions.table(name).schema
    removed: list[SortedFile] = []
    kept: list[ds.Fragment] = []
    try:
        dataset = table.to_pyarrow_dataset()
        for fragment in dataset.get_fragments():
            # row groups whose statistics exclude it are not read
            count = fragment.count_rows(filter=is_removed)
            if count:
                removed.append(present[fragment.path])
            if 0 < count < fragment.count_rows():
                kept.append(fragment)
        if not removed:
            return False
        added = write_files(files_of(table.table_uri), name, _kept_rows(kept, is_removed, dataset.schema, schema), file_bytes)
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        raise damaged_tables(f"a file of {name} is missing or damaged", table.table_uri.rstrip("/").rpartition("/")[0]) from error
    replace_files(table, removed, added, stamp, FEWER_ROWS)
    return True


def keep_rows(table: DeltaTable, name: str, kept: Iterable[pa.RecordBatch], stamp: str, file_bytes: int) -> None:
    """Replace all files of a table by files with the rows `kept`, which must be some of its rows.

    Raises:
        CommitConflict: the table has a newer version than `table`; it was not changed.
    """
    added = write_files(files_of(table.table_uri), name, kept, file_bytes)
    replace_files(table, _files(table), added, stamp, FEWER_ROWS)


def write_files(files: TableFiles, name: str, rows: Iterable[pa.RecordBatch], file_bytes: int) -> list[dict[str, Any]]:
    """Write files of about `file_bytes` with the rows of a table, which need not fit in memory. Returns their `add` actions."""
    definition = definitions.table(name)
    indexed = definition.schema.names[: int(definition.properties.get("delta.dataSkippingNumIndexedCols", 32))]
    groups = _groups(rows, definition.schema)
    added = []
    while (first := next(groups, None)) is not None:
        added.append(_write_file(files, first, groups, indexed, file_bytes))
    return added


def _files(table: DeltaTable) -> list[SortedFile]:
    """The data files of a table whose rows have no order."""
    actions = pa.table(table.get_add_actions(flatten=True))
    columns = (actions[name].to_pylist() for name in ("path", "size_bytes", "num_records"))
    return [SortedFile(path, size, rows or 0, None, None) for path, size, rows in zip(*columns, strict=True)]


def _write_file(
    files: TableFiles, first: pa.Table, following: Iterator[pa.Table], indexed: list[str], file_bytes: int
) -> dict[str, Any]:
    path = f"part-00000-{uuid4()}-c000.zstd.parquet"
    statistics = FileStatistics(indexed)

    def write(sink: pa.NativeFile) -> None:
        with pq.ParquetWriter(sink, first.schema, compression="zstd", store_schema=False, **encodings(first.schema)) as writer:
            group: pa.Table | None = first
            while group is not None:
                writer.write_table(group)
                statistics.add(group)
                group = next(following, None) if sink.tell() < file_bytes else None

    size, time_ms = files.write(path, write)
    return add_action(path, size, time_ms, statistics)


def _kept_rows(
    fragments: Iterable[ds.Fragment], is_removed: ds.Expression, stored: pa.Schema, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    # null, where a row has no time, is not false
    is_kept = ~is_removed | is_removed.is_null()
    for fragment in fragments:
        for batch in fragment.to_batches(schema=stored, filter=is_kept):
            yield from pa.Table.from_batches([batch]).cast(schema).to_batches()


def _groups(rows: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Join or divide rows into tables of _GROUP_ROWS."""
    waiting = schema.empty_table()
    for batch in rows:
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch], schema)])
        while waiting.num_rows >= _GROUP_ROWS:
            yield waiting.slice(0, _GROUP_ROWS)
            waiting = waiting.slice(_GROUP_ROWS)
    if waiting.num_rows:
        yield waiting
