"""Merges of tasks, each in a range of groups of its own, against one merge in the driver. Without Spark."""

import itertools
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from deltalake import DeltaTable
from feed_changes import changed_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.tables import definitions
from pipelines.tables.sorted_files import sorted_files
from pipelines.tables.sorted_files.change_files import CHANGE_DATA_FEED
from pipelines.tables.sorted_files.file_ranges import FileRun, RunLookup, file_runs, range_starts
from pipelines.tables.sorted_files.sorted_files import SortedFile, replace_files, sorted_by_key, sorted_files_of
from pipelines.tables.store import query
from pipelines.tables.writers import executor_tasks, sorted_merge
from pipelines.tables.writers.executor_tasks import AppendTask, MergeTask, WrittenFiles
from pipelines.tables.writers.sorted_merge import merge_sorted
from pipelines.tables.writers.table_write import DELETED, EFFECTIVE_OFFSET, TableWrite, source_schema

OFFSETS = definitions.table("offsets")
SCHEMA = source_schema("offsets")

groups = st.sampled_from(["", "a", "aa", "b", "c", "d", "é", "m", "n", "o", "z" * 40, "\U0001f600"])
keys = st.tuples(groups, st.sampled_from(["t", "u"]), st.integers(0, 3))
writes = st.dictionaries(keys, st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=40)


def rows_of(write: dict[tuple[str, str, int], tuple[int, bool]]) -> pa.Table:
    rows: list[dict[str, Any]] = [
        {
            "group_id": group,
            "topic": topic,
            "partition": partition,
            "committed_offset": offset,
            "metadata": "",
            "log_partition": 0,
            "log_offset": offset,
            "batch_id": 0,
            EFFECTIVE_OFFSET: offset,
            DELETED: is_removal,
        }
        for (group, topic, partition), (offset, is_removal) in write.items()
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def merge_by_tasks(table: DeltaTable, rows: pa.Table, count: int) -> None:
    """Merge as `BulkWriter` does: rows by range, sorted, each range in a task."""
    runs = file_runs(sorted_files_of(table))
    lows: list[str | None] = ["", *range_starts(runs, count), None]
    files = WrittenFiles()
    task = MergeTask(table.table_uri, OFFSETS.schema, OFFSETS.key, runs, has_feed=True)
    for low, high in itertools.pairwise(lows):
        own = [str(low) <= group and (high is None or group < high) for group in rows["group_id"].to_pylist()]
        part = sorted_by_key(rows.filter(pa.array(own)), OFFSETS.key)
        found = WrittenFiles.of(results(task(part.to_batches(max_chunksize=3))))
        files.added += found.added
        files.removed += found.removed
        files.changed += found.changed
    assert len(set(files.removed)) == len(files.removed), "two tasks replace the same file"
    by_path = {sorted_file.path: sorted_file for sorted_file in sorted_files_of(table)}
    if files.added or files.removed:
        replace_files(table, [by_path[path] for path in files.removed], files.added, "", changed=files.changed)


def results(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches, pa.schema([(name, pa.string()) for name in ("added", "removed", "changed")]))


def contents(table: DeltaTable) -> list[dict[str, Any]]:
    columns = "group_id, topic, partition, committed_offset"
    rows = query({"offsets": DeltaTable(table.table_uri)}, f"SELECT {columns} FROM offsets ORDER BY 1, 2, 3")
    return list(rows.to_pylist())


def changes(table: DeltaTable) -> list[str]:
    return sorted(str(row) for row in changed_rows(table.table_uri.removeprefix("file://"), table.version()))


@settings(max_examples=25)
@given(
    writes=st.lists(writes, min_size=1, max_size=3),
    file_rows=st.integers(1, 4),
    task_rows=st.integers(2, 9),
    count=st.integers(1, 5),
)
def test_tasks_merge_as_the_driver_does(
    writes: list[dict[tuple[str, str, int], tuple[int, bool]]], file_rows: int, task_rows: int, count: int
) -> None:
    sizes: dict[str, Any] = {"FILE_ROWS": file_rows, "MAX_FILE_ROWS": 2 * file_rows}
    with (
        mock.patch.multiple(sorted_files, **sizes),
        mock.patch.multiple(sorted_merge, MAX_FILE_ROWS=2 * file_rows),
        mock.patch.multiple(executor_tasks, TASK_ROWS=task_rows),
        tempfile.TemporaryDirectory() as folder,
    ):
        feed = {CHANGE_DATA_FEED: "true"}
        one, many = (DeltaTable.create(f"{folder}/{name}", OFFSETS.schema, configuration=feed) for name in ("one", "many"))
        for write in writes:
            rows = rows_of(write)
            merge_sorted(one, TableWrite("offsets", rows), "")
            merge_by_tasks(many, rows, count)
            assert contents(many) == contents(one)
            assert changes(many) == changes(one)


def test_sorted_rows_become_leaves(tmp_path: Path) -> None:
    rows = rows_of({(f"g{number:05}", "t", 0): (1, False) for number in range(20_000)}).select(OFFSETS.schema.names)
    for name, is_sorted, sizes in (("sorted files", True, [4_000] * 5), ("files", False, [20_000])):
        (tmp_path / name).mkdir()
        batches = rows.to_batches(max_chunksize=999)
        files = WrittenFiles.of(results(AppendTask(str(tmp_path / name), OFFSETS.schema, is_sorted)(batches)))
        assert [json.loads(one["stats"])["numRecords"] for one in files.added] == sizes
        assert files.removed == []


def sorted_file(low: str | None, high: str | None, rows: int = 1) -> SortedFile:
    return SortedFile(f"{low}-{high}", 1, rows, low, high)


def test_runs_of_leaves() -> None:
    found = file_runs(
        [sorted_file("a", "c"), sorted_file("c", "d"), sorted_file("e", "g"), sorted_file("f", "f"), sorted_file("h", "i")]
    )
    assert [(run.low, run.high, run.rows) for run in found] == [("a", "d", 2), ("e", "g", 2), ("h", "i", 1)]
    # a file without statistics may have any row
    assert [(run.low, run.high, run.rows) for run in file_runs([sorted_file(None, None), sorted_file("a", "c")])] == [
        ("", None, 2)
    ]


def test_ranges_have_similar_numbers_of_rows() -> None:
    runs = [FileRun(f"{number:02}", f"{number:02}", (sorted_file("", "", 10),)) for number in range(12)]
    assert range_starts(runs, 3) == ["04", "08"]
    assert range_starts(runs[:2], 8) == ["01"]
    assert range_starts(runs[:1], 8) == []
    assert range_starts([], 8) == []


def test_rows_are_separable_between_runs_and_after_them() -> None:
    lookup = RunLookup(file_runs([sorted_file("b", "d"), sorted_file("f", "h")]))
    separable = {("a", "aa"), ("a", "b"), ("d", "e"), ("e", "ee"), ("e", "f"), ("d", "f"), ("h", "i"), ("a", "z")}
    pairs = {*separable, ("b", "c"), ("c", "d"), ("f", "g"), ("a", "a"), ("e", "e")}
    assert {pair for pair in pairs if lookup.is_separable(*pair)} == separable
