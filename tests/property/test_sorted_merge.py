"""Merges into sorted files against a dictionary: any writes, with files of a few rows, that split, become empty and overlap."""

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from expecting import expect
from feed_changes import changed_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.tables import definitions
from pipelines.tables.sorted_files import file_order, sorted_files
from pipelines.tables.sorted_files.change_files import CHANGE_DATA_FEED
from pipelines.tables.sorted_files.file_order import order_files
from pipelines.tables.sorted_files.sorted_files import (
    ScannedRows,
    find_rows,
    has_sorted_files,
    matched_columns,
    replace_files,
    sorted_files_of,
)
from pipelines.tables.store import query
from pipelines.tables.table_files import files_of
from pipelines.tables.writer import CommitConflict
from pipelines.tables.writers import sorted_merge
from pipelines.tables.writers.sorted_merge import merge_sorted
from pipelines.tables.writers.table_write import DELETED, EFFECTIVE_OFFSET, TableWrite, source_schema

SCHEMA = definitions.table("offsets").schema
KEY = definitions.KEYS["offsets"]

keys = st.tuples(st.sampled_from(["a", "b", "é", "m", "z" * 40, "\U0001f600"]), st.sampled_from(["t", "u"]), st.integers(0, 3))
operations = st.dictionaries(keys, st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=20)


@contextmanager
def files_of_rows(rows: int) -> Iterator[None]:
    sizes: dict[str, Any] = {"FILE_ROWS": rows, "MAX_FILE_ROWS": 2 * rows}
    with (
        mock.patch.multiple(sorted_files, **sizes),
        mock.patch.multiple(file_order, **sizes, _SMALL=rows // 2),
        mock.patch.multiple(sorted_merge, MAX_FILE_ROWS=2 * rows, _MANY_RUNS=rows),
    ):
        yield


def row(key: tuple[str, str, int], log_offset: int) -> dict[str, Any]:
    values = {"committed_offset": log_offset * 10, "log_partition": 0, "log_offset": log_offset, "batch_id": 0, "metadata": ""}
    return {**dict(zip(KEY, key, strict=True)), **values}


def write(found: dict[tuple[str, str, int], tuple[int, bool]]) -> TableWrite:
    rows = [{**row(key, offset), EFFECTIVE_OFFSET: offset, DELETED: gone} for key, (offset, gone) in found.items()]
    return TableWrite("offsets", pa.Table.from_pylist(rows, source_schema("offsets")))


def table(root: str, *, has_feed: bool = False) -> DeltaTable:
    definition = definitions.table("offsets")
    feed = {CHANGE_DATA_FEED: "true"} if has_feed else {}
    return DeltaTable.create(root, schema=definition.schema, configuration={**definition.properties, **feed})


def scanned_rows(opened: DeltaTable, firsts: set[str]) -> ScannedRows:
    columns = pa.schema([SCHEMA.field(name) for name in matched_columns("offsets")])
    found = find_rows(files_of(opened.table_uri), sorted_files_of(opened), columns, pa.array(sorted(firsts)))
    return ScannedRows(frozenset(firsts), {one.sorted_file.path: one for one in found})


def contents(root: str) -> dict[tuple[str, str, int], int]:
    found = query({"offsets": DeltaTable(root)}, "SELECT * FROM offsets").to_pylist()
    assert len({tuple(r[name] for name in KEY) for r in found}) == len(found)
    assert all(r["committed_offset"] == r["log_offset"] * 10 for r in found)
    return {tuple(r[name] for name in KEY): r["log_offset"] for r in found}


def with_changes(root: str, version: int, before: dict[tuple[str, str, int], int]) -> dict[tuple[str, str, int], int]:
    """The rows before a version, changed as its change files say."""
    rows = dict(before)
    adds = {"delete": False, "update_preimage": False, "insert": True, "update_postimage": True}
    for change in sorted(changed_rows(root, version), key=lambda change: adds[change["_change_type"]]):
        key = tuple(change[name] for name in KEY)
        if adds[change["_change_type"]]:
            assert key not in rows
            rows[key] = change["log_offset"]
        else:
            assert rows.pop(key) == change["log_offset"]
    return rows


def ranges(opened: DeltaTable) -> list[tuple[str, str]]:
    return [(expect(str, sorted_file.low), expect(str, sorted_file.high)) for sorted_file in sorted_files_of(opened)]


@settings(max_examples=25)
@given(
    st.lists(operations, min_size=1, max_size=6),
    st.lists(keys, max_size=6, unique=True),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_merging_is_updating_a_dictionary_unless_something_newer_is_there(
    writes: list[dict[tuple[str, str, int], tuple[int, bool]]],
    appended: list[tuple[str, str, int]],
    file_rows: int,
    tidied: bool,
    looked: bool,
    has_feed: bool,
) -> None:
    with files_of_rows(file_rows), tempfile.TemporaryDirectory() as root:
        opened, expected = table(root, has_feed=has_feed), dict.fromkeys(appended, 4)
        # two files that overlap, as the tasks of a first load leave them
        for half in (appended[::2], appended[1::2]):
            if half:
                write_deltalake(opened, pa.Table.from_pylist([row(key, 4) for key in half], SCHEMA), mode="append")
        for operations_of in writes:
            before, version = dict(expected), opened.version()
            for key, (offset, gone) in operations_of.items():
                if offset >= expected.get(key, -1):
                    expected.pop(key, None)
                    expected.update({} if gone else {key: offset})
            seen = scanned_rows(opened, {key[0] for key in [*operations_of, *appended]}) if looked else None
            changed = merge_sorted(opened, write(operations_of), "", seen)
            assert contents(root) == expected
            assert opened.version() == version + changed
            assert changed or before == expected
            assert not has_feed or not changed or with_changes(root, opened.version(), before) == expected
            if tidied:
                order_files(opened, "offsets", "")
                assert contents(root) == expected
                assert all(high <= low for (_, high), (low, _) in itertools.pairwise(ranges(opened)))
        wanted = pa.array(["b", "z" * 40])
        found = find_rows(
            files_of(opened.table_uri), sorted_files_of(opened), pa.schema([SCHEMA.field(name) for name in KEY]), wanted
        )
        rows = [tuple(r.values()) for one in found for r in one.rows.to_pylist()]
        assert sorted(rows) == sorted(key for key in expected if key[0] in wanted.to_pylist())


def test_only_the_files_that_hold_a_group_are_replaced(tmp_path: Path) -> None:
    opened = table(str(tmp_path))
    with files_of_rows(4):
        merge_sorted(opened, write({(f"g{number:02}", "t", 0): (1, False) for number in range(40)}), "")
        before = {sorted_file.path for sorted_file in sorted_files_of(opened)}
        merge_sorted(opened, write({("g07", "t", 0): (2, False), ("g08x", "t", 0): (2, False), ("g09", "t", 9): (2, True)}), "")
        after = {sorted_file.path for sorted_file in sorted_files_of(opened)}
    assert len(before) == 10
    assert len(before - after) == len(after - before) == 2
    assert all(high < low for (_, high), (low, _) in itertools.pairwise(ranges(opened)))


def test_an_existing_version_is_never_overwritten(tmp_path: Path) -> None:
    first, second = table(str(tmp_path)), DeltaTable(str(tmp_path))
    merge_sorted(first, write({("a", "t", 0): (1, False)}), "first")
    with pytest.raises(CommitConflict):
        merge_sorted(second, write({("a", "t", 0): (2, False)}), "")
    assert contents(str(tmp_path)) == {("a", "t", 0): 1}
    assert first.history(1)[0]["userMetadata"] == "first"
    assert not list((tmp_path / "_delta_log").glob("*.tmp"))


def test_checkpoints_are_as_frequent_as_those_of_other_writers(tmp_path: Path) -> None:
    opened = table(str(tmp_path))
    for _ in range(100):
        replace_files(opened, [], [], "")
    assert (tmp_path / "_delta_log" / "_last_checkpoint").exists()
    assert DeltaTable(str(tmp_path)).version() == 100


def test_scanned_rows_of_other_groups_are_not_used(tmp_path: Path) -> None:
    opened = table(str(tmp_path))
    merge_sorted(opened, write({("a", "t", 0): (1, False), ("b", "t", 0): (1, False)}), "")
    merge_sorted(opened, write({("b", "t", 0): (2, True)}), "", scanned_rows(opened, {"a"}))
    assert contents(str(tmp_path)) == {("a", "t", 0): 1}


def test_tables_with_newer_features_are_left_to_other_writers(tmp_path: Path) -> None:
    assert has_sorted_files(table(str(tmp_path / "plain")))
    schema = definitions.table("offsets").schema
    with_vectors = {"delta.enableDeletionVectors": "true"}
    assert not has_sorted_files(DeltaTable.create(str(tmp_path / "vectors"), schema=schema, configuration=with_vectors))
