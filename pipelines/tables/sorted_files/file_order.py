"""Reordering of the sorted files of a table into disjoint ranges and files of similar size."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from pipelines.tables import definitions
from pipelines.tables.sorted_files.sorted_files import (
    FILE_ROWS,
    MAX_FILE_ROWS,
    MOVED_ROWS,
    SortedFile,
    open_file,
    read_columns,
    replace_files,
    sorted_files_of,
    sorted_rows,
    split_rows,
    write_file,
)
from pipelines.tables.table_files import TableFiles, files_of

#: A file with fewer rows is merged with its neighbour.
_SMALL = FILE_ROWS // 2


def order_files(table: DeltaTable, name: str, stamp: str) -> tuple[int, int]:
    """Replace sorted files that overlap or have far too few or too many rows. Returns how many were removed and added.

    Raises:
        CommitConflict: the table has a newer version than `table`; it was not changed.
    """
    runs = [run for run in _runs(sorted_files_of(table)) if len(run) > 1 or run[0].rows > MAX_FILE_ROWS]
    if not runs:
        return 0, 0
    files = files_of(table.table_uri)
    removed = [sorted_file for run in runs for sorted_file in run]
    added = [write_file(files, rows) for run in runs for rows in _merged(files, name, run)]
    replace_files(table, removed, added, stamp, MOVED_ROWS)
    return len(removed), len(added)


def _runs(sorted_files: list[SortedFile]) -> list[list[SortedFile]]:
    """Group the sorted files that must be written together, in order."""
    runs: list[list[SortedFile]] = []
    high, rows = "", 0
    for sorted_file in sorted_files:
        overlaps = sorted_file.low is None or sorted_file.high is None or sorted_file.low < high
        is_small = min(rows, sorted_file.rows) < _SMALL and rows + sorted_file.rows <= MAX_FILE_ROWS
        if runs and (overlaps or is_small):
            runs[-1].append(sorted_file)
            rows += sorted_file.rows
        else:
            runs.append([sorted_file])
            rows = sorted_file.rows
        # every file after a file of unknown range may overlap with it
        high = chr(0x10FFFF) if sorted_file.high is None else max(high, sorted_file.high)
    return runs


def _merged(files: TableFiles, name: str, run: list[SortedFile]) -> Iterator[pa.Table]:
    """Yield the rows of a run as new files. Only rows that may interleave with those of later files are in memory."""
    schema = definitions.table(name).schema
    waiting = schema.empty_table()
    for sorted_file, following in zip(run, [*run[1:], None], strict=True):
        rows = read_columns(open_file(files, sorted_file.path), schema).cast(schema)
        waiting = sorted_rows(name, pa.concat_tables([waiting, rows])).combine_chunks()
        if following is None:
            yield from split_rows(waiting)
        elif following.low is not None:
            final = pc.sum(pc.less(waiting[0], following.low)).as_py() or 0
            for _ in range(final // FILE_ROWS):
                yield waiting.slice(0, FILE_ROWS)
                waiting = waiting.slice(FILE_ROWS)
