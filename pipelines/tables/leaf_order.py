"""Reordering of the leaves of a table into disjoint ranges and files of similar size."""

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
    read_columns,
    replace_leaves,
    sorted_rows,
    write_leaf,
)
from pipelines.tables.table_files import TableFiles, files_of

#: A leaf with fewer rows is merged with its neighbour.
_SMALL = LEAF_ROWS // 2


def order_leaves(table: DeltaTable, name: str, stamp: str) -> tuple[int, int]:
    """Replace leaves that overlap or have far too few or too many rows. Returns the numbers of removed and of added leaves.

    Raises:
        CommitConflict: the table has a newer version than `table`; it was not changed.
    """
    runs = [run for run in _runs(leaves_of(table)) if len(run) > 1 or run[0].rows > MAX_LEAF_ROWS]
    if not runs:
        return 0, 0
    files = files_of(table.table_uri)
    removed = [leaf for run in runs for leaf in run]
    added = [write_leaf(files, rows) for run in runs for rows in _merged(files, name, run)]
    replace_leaves(table, removed, added, stamp, changes_rows=False)
    return len(removed), len(added)


def _runs(leaves: list[Leaf]) -> list[list[Leaf]]:
    """Group the leaves that must be written together, in order."""
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
        # every leaf after a file of unknown range may overlap with it
        high = chr(0x10FFFF) if leaf.high is None else max(high, leaf.high)
    return runs


def _merged(files: TableFiles, name: str, run: list[Leaf]) -> Iterator[pa.Table]:
    """Yield the rows of a run as new leaves. Only rows that may interleave with those of later leaves are in memory."""
    schema = definitions.table(name).schema
    waiting = schema.empty_table()
    for leaf, following in zip(run, [*run[1:], None], strict=True):
        rows = read_columns(open_leaf(files, leaf.path), schema).cast(schema)
        waiting = sorted_rows(name, pa.concat_tables([waiting, rows])).combine_chunks()
        if following is None:
            yield from in_leaves(waiting)
        elif following.low is not None:
            final = pc.sum(pc.less(waiting[0], following.low)).as_py() or 0
            for _ in range(final // LEAF_ROWS):
                yield waiting.slice(0, LEAF_ROWS)
                waiting = waiting.slice(LEAF_ROWS)
