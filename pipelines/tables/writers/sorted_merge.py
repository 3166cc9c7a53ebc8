"""Merge of rows into the sorted files of a table: every file with one of the keys is replaced by a file with the new rows."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from pipelines.tables import definitions
from pipelines.tables.sorted_files.change_files import ChangeType, has_change_data_feed, of_type, write_change_file
from pipelines.tables.sorted_files.sorted_files import (
    MAX_FILE_ROWS,
    FileRows,
    ScannedRows,
    SortedFile,
    find_rows,
    open_file,
    read_columns,
    replace_files,
    sorted_by_key,
    sorted_files_of,
    split_rows,
    write_file,
)
from pipelines.tables.table_files import TableFiles, file_threads, files_of
from pipelines.tables.writers.table_write import DELETED, EFFECTIVE_OFFSET, TableWrite

_LOG_OFFSET = "log_offset"

#: Largest number of runs that are copied as slices; for more runs, rows are selected one by one.
_MANY_RUNS = 64


@dataclass
class _Change:
    """Change of a file: the indexes of its rows that rows of the write replace or remove, and the inserted rows."""

    sorted_file: SortedFile | None
    numbers: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    sources: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    inserted: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))


def merge_sorted(table: DeltaTable, write: TableWrite, stamp: str, scanned_rows: ScannedRows | None = None) -> bool:
    """Apply `write` to `table` in one commit. Returns False if no row changes.

    Rows in `scanned_rows` are not read again.

    Raises:
        CommitConflict: the table has a newer version than `table`; it was not changed.
    """
    definition = definitions.table(write.table)
    files, has_feed = files_of(table.table_uri), has_change_data_feed(table)
    merge = SortedMerge(files, definition.schema, definition.key, write.rows, has_feed=has_feed)
    removed, added, changed = merge.replaced(sorted_files_of(table), scanned_rows)
    if not removed and not added:
        return False
    replace_files(table, removed, added, stamp, changed=changed)
    return True


class MergedFiles(NamedTuple):
    """The sorted files that a merge replaces, the `add` actions of new ones, and the `cdc` actions of change files."""

    removed: list[SortedFile]
    added: list[dict[str, Any]]
    changed: list[dict[str, Any]]


class SortedMerge:
    """Merge of source rows into sorted files of a table with this schema and key, up to the commit.

    `has_feed`: the changed rows are written, too.
    """

    def __init__(self, files: TableFiles, schema: pa.Schema, key: Sequence[str], rows: pa.Table, *, has_feed: bool) -> None:
        self._files, self._schema, self._key, self._has_feed = files, schema, key, has_feed
        rows = sorted_by_key(rows, key).combine_chunks()
        self._firsts = rows[schema.names[0]].to_pylist()
        self._keys = rows.select(key)
        self._deleted = rows[DELETED].to_numpy()
        self._effective = rows[EFFECTIVE_OFFSET].to_numpy()
        self._source = rows.select(schema.names)

    def replaced(self, sorted_files: list[SortedFile], scanned_rows: ScannedRows | None = None) -> MergedFiles:
        """Write the new files, and one change file for all of them; nothing without a change."""
        changes = self._plan(sorted_files, scanned_rows)
        with file_threads(self._files) as threads:
            written = list(threads.map(self._rewrite, changes))
        removed = [change.sorted_file for change in changes if change.sorted_file is not None]
        rows = [table for _, changed_rows in written for table in changed_rows if table.num_rows]
        changed = [write_change_file(self._files, pa.concat_tables(rows))] if rows else []
        return MergedFiles(removed, [action for actions, _ in written for action in actions], changed)

    def _plan(self, sorted_files: list[SortedFile], scanned_rows: ScannedRows | None) -> list[_Change]:
        found = [one for one in self._found(sorted_files, scanned_rows) if len(one.numbers)]
        rows = pa.concat_tables([one.rows for one in found]) if found else self._keys.slice(0, 0)
        sources = matching_rows(rows, self._keys) if found else np.zeros(0, np.int64)
        is_matched = np.zeros(len(self._firsts), bool)
        is_matched[sources[sources >= 0]] = True
        changes = sources >= 0
        if found and _LOG_OFFSET in rows.schema.names:
            # keep a row of a newer record
            changes &= self._effective[sources] >= rows[_LOG_OFFSET].to_numpy()
        by_path: dict[str, _Change] = {}
        for one, start in zip(found, np.cumsum([0, *(len(one.numbers) for one in found)]), strict=False):
            part = slice(start, start + len(one.numbers))
            if changes[part].any():
                by_path[one.sorted_file.path] = _Change(one.sorted_file, one.numbers[changes[part]], sources[part][changes[part]])
        self._insert(np.flatnonzero(~is_matched & ~self._deleted), sorted_files, by_path)
        return list(by_path.values())

    def _found(self, sorted_files: list[SortedFile], scanned_rows: ScannedRows | None) -> list[FileRows]:
        """Find the rows of the sorted files that may match rows of the write."""
        wanted = [sorted_file for sorted_file in sorted_files if sorted_file.may_hold(self._firsts)]
        if not wanted:
            return []
        seen = scanned_rows.by_path if scanned_rows and scanned_rows.firsts.issuperset(self._firsts) else {}
        compared = (*self._key, _LOG_OFFSET)
        schema = pa.schema([field.with_nullable(True) for field in self._schema if field.name in compared])
        unseen = [sorted_file for sorted_file in wanted if sorted_file.path not in seen]
        first = self._source[0].unique()
        found = {one.sorted_file.path: one for one in find_rows(self._files, unseen, schema, first)}
        return [seen.get(sorted_file.path) or found[sorted_file.path] for sorted_file in wanted]

    def _insert(self, numbers: np.ndarray, sorted_files: list[SortedFile], by_path: dict[str, _Change]) -> None:
        """Add rows to the last file that starts at or before their key, or to the first one."""
        known = [sorted_file for sorted_file in sorted_files if sorted_file.low is not None]
        bounds = [bisect_left(self._firsts, sorted_file.low) for sorted_file in known[1:]]
        parts = np.split(numbers, np.searchsorted(numbers, bounds))
        targets: list[SortedFile | None] = [*known] or [None]
        for sorted_file, part in zip(targets, parts, strict=True):
            if len(part):
                by_path.setdefault(sorted_file.path if sorted_file else "", _Change(sorted_file)).inserted = part

    def _rewrite(self, change: _Change) -> tuple[list[dict[str, Any]], list[pa.Table]]:
        """Write the files that replace a file. Returns their actions, and the changed rows for a feed."""
        removed = self._deleted[change.sources]
        replacing = change.sources[~removed]
        added = _in(self._schema, self._source.take(pa.array(np.concatenate([replacing, change.inserted]))))
        if change.sorted_file is None:
            before = self._schema.empty_table()
        else:
            before = _in(self._schema, read_columns(open_file(self._files, change.sorted_file.path), self._schema))
        order = np.arange(before.num_rows)
        # a replaced row keeps its index, so that the file remains sorted
        order[change.numbers[~removed]] = before.num_rows + np.arange(len(replacing))
        order = np.delete(order, change.numbers[removed])
        new = np.arange(len(replacing), added.num_rows)
        rows = _picked(pa.concat_tables([before, added]), np.concatenate([order, before.num_rows + new]))
        if len(change.inserted) or rows.num_rows > MAX_FILE_ROWS:
            rows = sorted_by_key(rows, self._key).combine_chunks()
        changed = []
        if self._has_feed:
            changed = [
                of_type(ChangeType.DELETE, before.take(change.numbers[removed])),
                of_type(ChangeType.BEFORE, before.take(change.numbers[~removed])),
                of_type(ChangeType.AFTER, added.slice(0, len(replacing))),
                of_type(ChangeType.INSERT, added.slice(len(replacing))),
            ]
        return [write_file(self._files, part) for part in split_rows(rows)], changed


def matching_rows(rows: pa.Table, keys: pa.Table) -> np.ndarray:
    """For each of `rows`, the index of the row of `keys` with equal values in all columns of `keys`, or -1."""
    found, known = np.zeros(rows.num_rows, np.int64), np.zeros(keys.num_rows, np.int64)
    for name in keys.schema.names:
        values = keys[name].unique()
        # values that are not in `keys` get a number that no key has
        digits = pc.fill_null(pc.index_in(rows[name], values), len(values)).to_numpy()
        found = found * (len(values) + 1) + digits
        known = known * (len(values) + 1) + pc.index_in(keys[name], values).to_numpy()
        # renumber from 0, so that the numbers remain small
        distinct, known = np.unique(known, return_inverse=True)
        at = np.searchsorted(distinct, found)
        at[at == len(distinct)] = 0
        found = np.where(distinct[at] == found, at, len(distinct)) if len(distinct) else found
    numbers = np.full(len(keys) + 1, -1, np.int64)
    numbers[known] = np.arange(keys.num_rows)
    return numbers[found]


def _picked(rows: pa.Table, order: np.ndarray) -> pa.Table:
    """Select rows by index: as slices if there are few runs of consecutive rows, which is a plain copy of bytes."""
    starts = np.flatnonzero(np.diff(order, prepend=-2) != 1)
    if len(starts) > _MANY_RUNS:
        return rows.combine_chunks().take(pa.array(order))
    lengths = np.diff(starts, append=len(order))
    runs = [rows.slice(first, length) for first, length in zip(order[starts].tolist(), lengths.tolist(), strict=True)]
    return pa.concat_tables(runs or [rows.slice(0, 0)]).combine_chunks()


def _in(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    return rows if rows.schema.equals(schema) else rows.cast(schema)
