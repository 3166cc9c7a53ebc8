"""Sorted files: the files of a merged table, small and sorted by key like the leaves of a B+ tree.

The range of the first column decides which file may have a row. delta-rs' merge scatters the rows of every file that it rewrites,
so that after a few batches each file spans all groups and each batch rewrites the whole table (docs/adr/0012). Here a batch
replaces only the files with its groups, one by one, and the order of the files is kept. The format is plain Delta of protocol
1/2, or 1/4 with a change data feed: Parquet files, and a commit that creates the log file of the next version unless it exists.
In a local folder this module does that. In an object store delta-rs does, with a conditional put, unless there are change files,
which it cannot commit.
"""

import itertools
import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from coordinator_core.log.force import force
from pipelines.runtime.timestamps import now_ms
from pipelines.tables import definitions
from pipelines.tables.added_file import FileStatistics, add_action
from pipelines.tables.damage import damaged_tables
from pipelines.tables.delta_writes import WITHOUT_HOOKS, checkpoint_when_due, stamped
from pipelines.tables.object_stores import ObjectExists, Objects, reason_of
from pipelines.tables.sorted_files.change_files import has_change_data_feed
from pipelines.tables.sorted_files.encodings import encodings
from pipelines.tables.table_files import LocalFiles, TableFiles, file_threads, files_of
from pipelines.tables.writer import CommitConflict

#: Rows of a new file. Small sorted files are cheap to replace, but a query opens every file whose range may match.
FILE_ROWS = 4_000

#: Larger sorted files are split.
MAX_FILE_ROWS = 2 * FILE_ROWS

#: Number of columns with statistics, equal to `delta.dataSkippingNumIndexedCols` of the tables.
_INDEXED_COLUMNS = 4


@dataclass(frozen=True)
class SortedFile:
    """A data file: its path in the log and the range of its first column, None if the log has no statistics."""

    path: str
    size: int
    rows: int
    low: str | None
    high: str | None

    def may_hold(self, values: Sequence[str]) -> bool:
        """True if the file's range may contain one of the sorted values."""
        if self.low is None or self.high is None:
            return True
        return bisect_left(values, self.low) < bisect_right(values, self.high)


@dataclass(frozen=True)
class FileRows:
    """Some rows of a file: their indexes, ascending, and some of their columns."""

    sorted_file: SortedFile
    numbers: np.ndarray
    rows: pa.Table


@dataclass(frozen=True)
class ScannedRows:
    """Rows read from a table: all rows whose first column has one of the values `firsts`, by the path of their file.

    They remain valid, because files never change.
    """

    firsts: frozenset[str]
    by_path: Mapping[str, FileRows]


def has_sorted_files(table: DeltaTable) -> bool:
    """True if the files of `table` can be replaced as sorted files: protocol 1/2, or 1/4 for a feed, and no partitions."""
    protocol = table.protocol()
    most = 4 if has_change_data_feed(table) else 2
    is_plain = protocol.min_reader_version == 1 and protocol.min_writer_version <= most
    return is_plain and not table.metadata().partition_columns


def sorted_files_of(table: DeltaTable) -> list[SortedFile]:
    """List the files of the table's version by the start of their range; those of unknown range are first."""
    actions = pa.table(table.get_add_actions(flatten=True))
    column = table.schema().fields[0].name
    nothing = [None] * actions.num_rows
    names = ("path", "size_bytes", "num_records", f"min.{column}", f"max.{column}")
    values = [actions[name].to_pylist() if name in actions.schema.names else nothing for name in names]
    found = [SortedFile(path, size, rows or 0, low, high) for path, size, rows, low, high in zip(*values, strict=True)]
    return sorted(
        found,
        key=lambda sorted_file: (sorted_file.low is not None, sorted_file.low or "", sorted_file.high or "", sorted_file.path),
    )


def open_file(files: TableFiles, path: str, *, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a sorted file; the columns `dictionaries` are read as dictionaries.

    Raises:
        DamagedTables: it is missing, or no Parquet file.
    """
    try:
        return pq.ParquetFile(files.open(path), read_dictionary=dictionaries)
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        root, _, table = files.location.rstrip("/").rpartition("/")
        state = "missing" if isinstance(error, FileNotFoundError) else "damaged"
        raise damaged_tables(f"file {table}/{path} is {state}", root) from error


def read_columns(file: pq.ParquetFile, schema: pa.Schema) -> pa.Table:
    """The columns of `schema` in a file, null where the file is older than the column."""
    present = [name for name in schema.names if name in file.schema_arrow.names]
    found = file.read(columns=present, use_threads=False)
    for field in schema:
        if field.name not in found.schema.names:
            found = found.append_column(field.with_nullable(True), pa.nulls(found.num_rows, field.type))
    return found.select(schema.names)


def matched_columns(name: str) -> list[str]:
    """Columns of table `name` that a merge compares: the key and `log_offset`."""
    return [column for column in definitions.table(name).schema.names if column in (*definitions.KEYS[name], "log_offset")]


def find_rows(files: TableFiles, sorted_files: Iterable[SortedFile], columns: pa.Schema, firsts: pa.Array) -> list[FileRows]:
    """Find the rows of sorted files whose first column, which is also that of `columns`, has one of the values `firsts`."""
    first = columns.names[0]
    texts = [field.name for field in columns if pa.types.is_string(field.type)]

    def find(sorted_file: SortedFile) -> FileRows:
        file = open_file(files, sorted_file.path, dictionaries=texts)
        numbers = _rows_with(file, first, firsts)
        if not len(numbers):
            return FileRows(sorted_file, numbers, columns.empty_table())
        return FileRows(sorted_file, numbers, read_columns(file, columns).take(pa.array(numbers)).cast(columns))

    with file_threads(files) as threads:
        return list(threads.map(find, sorted_files))


def _rows_with(file: pq.ParquetFile, column: str, values: pa.Array) -> np.ndarray:
    """Indexes of the rows with one of the values in `column`, which the file must be opened with as dictionary."""
    found = file.read(columns=[column], use_threads=False)[column].combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.array([], pa.dictionary(pa.int32(), pa.string()))
    wanted = pc.is_in(found.dictionary, values).to_numpy(zero_copy_only=False)
    return np.flatnonzero(wanted[found.indices.to_numpy()])


def split_rows(rows: pa.Table) -> list[pa.Table]:
    """Split sorted rows into sorted files of similar size."""
    count = -(-rows.num_rows // FILE_ROWS) if rows.num_rows > MAX_FILE_ROWS else min(1, rows.num_rows)
    ends = [rows.num_rows * number // count for number in range(count + 1)] if count else []
    return [rows.slice(start, end - start) for start, end in itertools.pairwise(ends)]


def write_file(files: TableFiles, rows: pa.Table) -> dict[str, Any]:
    """Write a file, not visible to readers yet, and return the `add` action for its commit."""
    path = f"part-00000-{uuid4()}-c000.snappy.parquet"

    def write(sink: pa.NativeFile) -> None:
        pq.write_table(
            rows,
            sink,
            compression="snappy",
            **encodings(rows.schema),
            write_statistics=rows.schema.names[:_INDEXED_COLUMNS],
            store_schema=False,
        )

    size, time_ms = files.write(path, write)
    statistics = FileStatistics(rows.schema.names[:_INDEXED_COLUMNS])
    statistics.add(rows)
    return add_action(path, size, time_ms, statistics)


@dataclass(frozen=True)
class RowChange:
    """What the files of a commit change, as its actions declare by `dataChange`.

    By Delta's protocol an `add` without it has only rows of removed files, and a `remove` without it only rows of added files.
    """

    adds_rows: bool = True
    removes_rows: bool = True

    @property
    def operation(self) -> str:
        """Name of the operation in the history of the table."""
        if self.adds_rows:
            return "MERGE"
        return "DELETE" if self.removes_rows else "OPTIMIZE"


#: Any change.
CHANGED_ROWS = RowChange()

#: The same rows in other files.
MOVED_ROWS = RowChange(adds_rows=False, removes_rows=False)

#: Fewer rows: added files have what remains of the removed ones.
FEWER_ROWS = RowChange(adds_rows=False)


def replace_files(
    table: DeltaTable,
    removed: Iterable[SortedFile],
    added: Iterable[Mapping[str, Any]],
    stamp: str,
    change: RowChange = CHANGED_ROWS,
    changed: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Commit the next version of `table`: without the sorted files `removed`, with those `added` and the change files `changed`.

    `stamp` is kept in its history. Afterwards `table` is at the new version.

    Raises:
        CommitConflict: that version exists already; the table was not changed, and the files `added` are unused.
    """
    files = files_of(table.table_uri)
    if isinstance(files, LocalFiles):
        # without delta-rs, which lists the log first: 20 ms after 10,000 commits (docs/adr/0012)
        create_entry(files.folder / _entry(table), _entry_text(table, removed, added, stamp, change, changed))
    elif changed:
        _create_object(table, _entry_text(table, removed, added, stamp, change, changed))
    else:
        _commit_to_store(table, removed, added, stamp, change)
    table.update_incremental()
    checkpoint_when_due(table)


def _entry(table: DeltaTable) -> str:
    return f"_delta_log/{table.version() + 1:020}.json"


def _entry_text(
    table: DeltaTable,
    removed: Iterable[SortedFile],
    added: Iterable[Mapping[str, Any]],
    stamp: str,
    change: RowChange,
    changed: Iterable[Mapping[str, Any]],
) -> str:
    now = now_ms()
    removals = [
        {
            "path": sorted_file.path,
            "deletionTimestamp": now,
            "dataChange": change.removes_rows,
            "size": sorted_file.size,
            "partitionValues": {},
        }
        for sorted_file in removed
    ]
    info: dict[str, Any] = {
        "timestamp": now,
        "operation": change.operation if removals or not change.adds_rows else "WRITE",
        "operationParameters": {},
        "readVersion": table.version(),
        "userMetadata": stamp,
    }
    actions: list[Mapping[str, Any]] = [
        {"commitInfo": info},
        *({"remove": one} for one in removals),
        *({"add": {**one, "dataChange": change.adds_rows}} for one in added),
        *({"cdc": one} for one in changed),
    ]
    return "".join(f"{_json(action)}\n" for action in actions)


def _create_object(table: DeltaTable, text: str) -> None:
    try:
        Objects(table.table_uri.rstrip("/")).create(_entry(table), text.encode())
    except ObjectExists as error:
        raise CommitConflict(str(error)) from error


def _commit_to_store(
    table: DeltaTable, removed: Iterable[SortedFile], added: Iterable[Mapping[str, Any]], stamp: str, change: RowChange
) -> None:
    """Commit with delta-rs, which knows how each store makes a PUT conditional."""
    now = now_ms()
    adds = [AddAction(one["path"], one["size"], {}, one["modificationTime"], change.adds_rows, one["stats"]) for one in added]
    removals = [RemoveAction(sorted_file.path, change.removes_rows, now, sorted_file.size, {}) for sorted_file in removed]
    try:
        table.create_write_transaction(
            [*removals, *adds],
            "append",
            table.schema(),
            commit_properties=stamped(stamp),
            post_commithook_properties=WITHOUT_HOOKS,
        )
    except CommitFailedError as error:
        raise CommitConflict(f"{table.table_uri}: {reason_of(error)}") from error


def create_entry(path: Path, text: str) -> None:
    """Create the entry of a log atomically with its contents. Raises CommitConflict if it exists."""
    draft = path.parent / f"_commit_{uuid4()}.json.tmp"
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            force(file.fileno())
        os.link(draft, path)
    except FileExistsError as error:
        raise CommitConflict(f"{path} exists already") from error
    finally:
        draft.unlink(missing_ok=True)


def sorted_rows(table: str, rows: pa.Table) -> pa.Table:
    """Sort rows of a merged table in the order of its sorted files."""
    return sorted_by_key(rows, definitions.KEYS[table])


def sorted_by_key(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Sort rows by their first column, which decides about their file, then by the rest of the key."""
    first = rows.schema.names[0]
    return rows.sort_by([(name, "ascending") for name in (first, *(name for name in key if name != first))])


def _json(action: Mapping[str, Any]) -> str:
    return json.dumps(action, ensure_ascii=False, separators=(",", ":"))
