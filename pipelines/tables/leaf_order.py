"""Puts the leaves of a table in order: ranges that do not overlap, files of about the same size."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from pipelines.tables import definitions
from pipelines.tables.leaves import (
    LEAF_ROWS,
    MAX_LEAF_ROWS,
    Leaf,
    in_leaves,
    leaves_of,
    open_leaf,
    replace_leaves,
    sorted_rows,
    write_leaf,
)

#: A leaf with fewer rows is put together with its neighbour.
_SMALL = LEAF_ROWS // 2


def order_leaves(table: DeltaTable, name: str, stamp: str) -> tuple[int, int]:
    """Replaces leaves that overlap or have far too few or too many rows; returns how many went and how many came.

    Raises:
        CommitConflict: the table has a newer version than it was opened at; nothing has changed.
    """
    runs = [run for run in _runs(leaves_of(table)) if len(run) > 1 or run[0].rows > MAX_LEAF_ROWS]
    if not runs:
        return 0, 0
    gone = [leaf for run in runs for leaf in run]
    added = [write_leaf(table, rows) for run in runs for rows in _merged(table, name, run)]
    replace_leaves(table, gone, added, stamp, changes_rows=False)
    return len(gone), len(added)


def _runs(leaves: list[Leaf]) -> list[list[Leaf]]:
    """Leaves that have to be written together, in order."""
    runs: list[list[Leaf]] = []
    high, rows = "", 0
    for leaf in leaves:
        overlaps = leaf.low is None or leaf.high is None or leaf.low < high
        is_small = min(rows, leaf.rows) < _SMALL and rows + leaf.rows <= MAX_LEAF_ROWS
        if runs and (overlaps or is_small):
            runs[-1].append(leaf)
            rows += leaf.rows
        else:
            runs.append([leaf])
            rows = leaf.rows
        # nothing sorts behind a file of unknown range
        high = chr(0x10FFFF) if leaf.high is None else max(high, leaf.high)
    return runs


def _merged(table: DeltaTable, name: str, run: list[Leaf]) -> Iterator[pa.Table]:
    """The rows of a run in new leaves; in memory are only those that a later leaf may still have rows between."""
    schema = definitions.table(name).schema
    waiting = schema.empty_table()
    for leaf, following in zip(run, [*run[1:], None], strict=True):
        rows = open_leaf(table, leaf).read(columns=schema.names, use_threads=False).select(schema.names).cast(schema)
        waiting = sorted_rows(name, pa.concat_tables([waiting, rows])).combine_chunks()
        if following is None:
            yield from in_leaves(waiting)
        elif following.low is not None:
            final = pc.sum(pc.less(waiting[0], following.low)).as_py() or 0
            for _ in range(final // LEAF_ROWS):
                yield waiting.slice(0, LEAF_ROWS)
                waiting = waiting.slice(LEAF_ROWS)
