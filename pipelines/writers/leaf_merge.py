"""Merges rows into the leaves of a table: every file that holds one of their keys is replaced by one with the rows in it."""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from pipelines.tables import definitions
from pipelines.tables.leaves import (
    MAX_LEAF_ROWS,
    Leaf,
    LeafRows,
    ScannedRows,
    find_rows,
    in_leaves,
    leaf_threads,
    leaves_of,
    matched_columns,
    open_leaf,
    replace_leaves,
    sorted_rows,
    write_leaf,
)
from pipelines.writers.table_write import DELETED, EFFECTIVE_OFFSET, TableWrite

_LOG_OFFSET = "log_offset"

#: Rows in more runs than this are picked one by one.
_MANY_RUNS = 64


@dataclass
class _Change:
    """What happens to a leaf: rows of it, by their number, that rows of the write replace or remove, and those that come new."""

    leaf: Leaf | None
    numbers: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    sources: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    inserted: list[int] = field(default_factory=list)


def merge_into_leaves(table: DeltaTable, write: TableWrite, stamp: str, scanned_rows: ScannedRows | None = None) -> bool:
    """Applies `write` to `table` in one commit and returns whether there was anything to change.

    What a `scanned_rows` of the table tells is not read again.

    Raises:
        CommitConflict: the table has a newer version than it was opened at; nothing has changed.
    """
    merge = _Merge(table, write)
    changes = merge.plan(scanned_rows)
    if not changes:
        return False
    with leaf_threads() as threads:
        added = [action for actions in threads.map(merge.rewrite, changes) for action in actions]
    replace_leaves(table, [change.leaf for change in changes if change.leaf is not None], added, stamp)
    return True


class _Merge:
    def __init__(self, table: DeltaTable, write: TableWrite) -> None:
        self._table, self._name, self._schema = table, write.table, definitions.table(write.table).schema
        rows = sorted_rows(write.table, write.rows).combine_chunks()
        self._firsts = rows[self._schema.names[0]].to_pylist()
        self._keys = rows.select(definitions.KEYS[write.table])
        self._deleted = rows[DELETED].to_numpy()
        self._effective = rows[EFFECTIVE_OFFSET].to_numpy()
        self._source = rows.select(self._schema.names)

    def plan(self, scanned_rows: ScannedRows | None) -> list[_Change]:
        """The leaves that change."""
        leaves = leaves_of(self._table)
        found = [one for one in self._found(leaves, scanned_rows) if len(one.numbers)]
        rows = pa.concat_tables([one.rows for one in found]) if found else self._keys.slice(0, 0)
        sources = places(rows, self._keys)
        is_matched = np.zeros(len(self._firsts), bool)
        is_matched[sources[sources >= 0]] = True
        changes = sources >= 0
        if found and _LOG_OFFSET in rows.schema.names:
            # a row of a newer record stays as it is
            changes &= self._effective[sources] >= rows[_LOG_OFFSET].to_numpy()
        by_path: dict[str, _Change] = {}
        for one, start in zip(found, np.cumsum([0, *(len(one.numbers) for one in found)]), strict=False):
            part = slice(start, start + len(one.numbers))
            if changes[part].any():
                by_path[one.leaf.path] = _Change(one.leaf, one.numbers[changes[part]], sources[part][changes[part]])
        self._insert(np.flatnonzero(~is_matched & ~self._deleted).tolist(), leaves, by_path)
        return list(by_path.values())

    def _found(self, leaves: list[Leaf], scanned_rows: ScannedRows | None) -> list[LeafRows]:
        """The rows of the leaves that may be those of the write."""
        wanted = [leaf for leaf in leaves if leaf.may_hold(self._firsts)]
        seen = scanned_rows.by_path if scanned_rows and scanned_rows.firsts.issuperset(self._firsts) else {}
        schema = pa.schema([self._schema.field(name).with_nullable(True) for name in matched_columns(self._name)])
        unseen = [leaf for leaf in wanted if leaf.path not in seen]
        first = self._source[0].unique()
        found = {one.leaf.path: one for one in find_rows(self._table, unseen, schema, first)}
        return [seen.get(leaf.path) or found[leaf.path] for leaf in wanted]

    def _insert(self, numbers: list[int], leaves: list[Leaf], by_path: dict[str, _Change]) -> None:
        known = [leaf for leaf in leaves if leaf.low is not None]
        lows = [leaf.low for leaf in known]
        for number in numbers:
            # the last leaf that does not begin behind it, or the first of all
            leaf = known[max(0, bisect_right(lows, self._firsts[number]) - 1)] if known else None
            by_path.setdefault(leaf.path if leaf else "", _Change(leaf)).inserted.append(number)

    def rewrite(self, change: _Change) -> list[dict[str, Any]]:
        """Writes what takes the place of a leaf."""
        gone = self._deleted[change.sources]
        replacing = change.sources[~gone]
        coming = _in(self._schema, self._source.take(pa.array([*replacing, *change.inserted], pa.int64())))
        if change.leaf is None:
            before = self._schema.empty_table()
        else:
            names = self._schema.names
            before = _in(self._schema, open_leaf(self._table, change.leaf).read(columns=names, use_threads=False).select(names))
        order = np.arange(before.num_rows)
        # a replaced row keeps its place, so that the leaf stays sorted
        order[change.numbers[~gone]] = before.num_rows + np.arange(len(replacing))
        order = np.delete(order, change.numbers[gone])
        new = np.arange(len(replacing), coming.num_rows)
        rows = _picked(pa.concat_tables([before, coming]), np.concatenate([order, before.num_rows + new]))
        if change.inserted or rows.num_rows > MAX_LEAF_ROWS:
            rows = sorted_rows(self._name, rows).combine_chunks()
        return [write_leaf(self._table, part) for part in in_leaves(rows)]


def places(rows: pa.Table, keys: pa.Table) -> np.ndarray:
    """For each of `rows` the number of the row of `keys` that is equal to it in all columns of `keys`, -1 where there is none."""
    found, known = np.zeros(rows.num_rows, np.int64), np.zeros(keys.num_rows, np.int64)
    for name in keys.schema.names:
        values = keys[name].unique()
        # what is not among the values gets a number that no key has
        digits = pc.fill_null(pc.index_in(rows[name], values), len(values)).to_numpy()
        found = found * (len(values) + 1) + digits
        known = known * (len(values) + 1) + pc.index_in(keys[name], values).to_numpy()
        # numbers from 0 on again, so that they never get large
        distinct, known = np.unique(known, return_inverse=True)
        at = np.searchsorted(distinct, found)
        at[at == len(distinct)] = 0
        found = np.where(distinct[at] == found, at, len(distinct)) if len(distinct) else found
    numbers = np.full(len(keys) + 1, -1, np.int64)
    numbers[known] = np.arange(keys.num_rows)
    return numbers[found]


def _picked(rows: pa.Table, order: np.ndarray) -> pa.Table:
    """Rows by their number: whole runs at a time where these are few, which copies nothing but bytes."""
    starts = np.flatnonzero(np.diff(order, prepend=-2) != 1)
    if len(starts) > _MANY_RUNS:
        return rows.combine_chunks().take(pa.array(order))
    lengths = np.diff(starts, append=len(order))
    runs = [rows.slice(first, length) for first, length in zip(order[starts].tolist(), lengths.tolist(), strict=True)]
    return pa.concat_tables(runs or [rows.slice(0, 0)]).combine_chunks()


def _in(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    return rows if rows.schema.equals(schema) else rows.cast(schema)
