"""Merges rows into the leaves of a table: every file that holds one of their keys is replaced by one with the rows in it."""

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from pipelines.tables import definitions
from pipelines.tables.leaves import (
    MAX_LEAF_ROWS,
    Leaf,
    in_leaves,
    leaf_threads,
    leaves_of,
    open_leaf,
    replace_leaves,
    rows_with,
    sorted_rows,
    write_leaf,
)
from pipelines.writers.table_write import DELETED, EFFECTIVE_OFFSET, TableWrite

_LOG_OFFSET = "log_offset"


@dataclass
class _Change:
    """What happens to a leaf. Rows of the leaf by their number, rows of the write by theirs."""

    leaf: Leaf | None
    matched: set[int] = field(default_factory=set)
    replaced: dict[int, int] = field(default_factory=dict)
    removed: list[int] = field(default_factory=list)
    inserted: list[int] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.replaced or self.removed or self.inserted)


def merge_into_leaves(table: DeltaTable, write: TableWrite, stamp: str) -> bool:
    """Applies `write` to `table` in one commit and returns whether there was anything to change.

    Raises:
        CommitConflict: the table has a newer version than it was opened at; nothing has changed.
    """
    merge = _Merge(table, write)
    changes = merge.plan()
    if not changes:
        return False
    with leaf_threads() as threads:
        added = [action for actions in threads.map(merge.rewrite, changes) for action in actions]
    replace_leaves(table, [change.leaf for change in changes if change.leaf is not None], added, stamp)
    return True


class _Merge:
    def __init__(self, table: DeltaTable, write: TableWrite) -> None:
        definition = definitions.table(write.table)
        self._table, self._name, self._schema = table, write.table, definition.schema
        self._first = definition.schema.names[0]
        self._key = (self._first, *(name for name in definition.key if name != self._first))
        self._rows = sorted_rows(write.table, write.rows).combine_chunks()
        self._keys = _tuples(self._rows, self._key)
        self._firsts = [key[0] for key in self._keys]
        self._wanted = pc.unique(self._rows[self._first])
        self._by_key = {key: number for number, key in enumerate(self._keys)}
        self._deleted = self._rows[DELETED].to_pylist()
        self._effective = self._rows[EFFECTIVE_OFFSET].to_pylist() if _LOG_OFFSET in definition.schema.names else None
        self._source = self._rows.select(definition.schema.names)

    def plan(self) -> list[_Change]:
        """The leaves that change."""
        leaves = leaves_of(self._table)
        with leaf_threads() as threads:
            changes = list(threads.map(self._match, (leaf for leaf in leaves if leaf.may_hold(self._firsts))))
        matched = set().union(*(change.matched for change in changes))
        by_path = {change.leaf.path: change for change in changes if change.leaf is not None}
        known = [leaf for leaf in leaves if leaf.low is not None]
        lows = [leaf.low for leaf in known]
        for number, first in enumerate(self._firsts):
            if number not in matched and not self._deleted[number]:
                # the last leaf that does not begin behind it, or the first of all
                leaf = known[max(0, bisect_right(lows, first) - 1)] if known else None
                by_path.setdefault(leaf.path if leaf else "", _Change(leaf)).inserted.append(number)
        return [change for change in by_path.values() if not change.is_empty]

    def rewrite(self, change: _Change) -> list[dict]:
        """Writes what takes the place of a leaf."""
        coming = self._source.take(pa.array([*change.replaced.values(), *change.inserted], pa.int64()))
        if change.leaf is None:
            rows = coming
        else:
            names = self._schema.names
            before = open_leaf(self._table, change.leaf).read(columns=names, use_threads=False).select(names)
            order = np.arange(before.num_rows + coming.num_rows)
            # a replaced row keeps its place, so that the leaf stays sorted
            order[list(change.replaced)] = before.num_rows + np.arange(len(change.replaced))
            kept = np.delete(order, [*change.removed, *range(before.num_rows, before.num_rows + len(change.replaced))])
            rows = pa.concat_tables([before.cast(coming.schema), coming]).combine_chunks().take(pa.array(kept))
            if change.inserted or rows.num_rows > MAX_LEAF_ROWS:
                rows = sorted_rows(self._name, rows)
        rows = rows.combine_chunks().cast(self._schema)
        return [write_leaf(self._table, part) for part in in_leaves(rows)]

    def _match(self, leaf: Leaf) -> _Change:
        """Finds the keys of the write in a leaf, and which of the rows there they change."""
        change = _Change(leaf)
        file = open_leaf(self._table, leaf, dictionary=self._first)
        numbers = rows_with(file, self._first, self._wanted)
        if not len(numbers):
            return change
        columns = [*self._key, *([_LOG_OFFSET] if self._effective else [])]
        found = file.read(columns=columns, use_threads=False).take(pa.array(numbers))
        offsets = found[_LOG_OFFSET].to_pylist() if self._effective else [0] * len(numbers)
        for number, key, offset in zip(numbers.tolist(), _tuples(found, self._key), offsets, strict=True):
            source = self._by_key.get(key)
            if source is None:
                continue
            change.matched.add(source)
            # a row of a newer record stays as it is
            if self._effective and self._effective[source] < offset:
                continue
            if self._deleted[source]:
                change.removed.append(number)
            else:
                change.replaced[number] = source
        return change


def _tuples(rows: pa.Table, names: tuple[str, ...]) -> list[tuple]:
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))
