"""Commits of other programs to the tables: harmless ones stay, others are reverted with a line about each."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType
from table_contents import contents
from three_batches import RANGES, applier

from pipelines.query.check import check
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.upkeep.maintain import Maintenance, maintain

LOOK = Maintenance(history_days=10_000, vacuum_hours=168, target_file_mb=64)

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def root(two_batches: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(two_batches, tmp_path / "tables"))


BY_ALICE = CommitProperties(custom_metadata={"userName": "alice"})


def offsets(root: Path) -> DeltaTable:
    return DeltaTable(str(root / "offsets"))


def commit_by_hand(root: Path, *actions: dict[str, Any], **info: Any) -> None:
    """A commit as another program writes it."""
    table = offsets(root)
    lines = [json.dumps(action) for action in ({"commitInfo": info}, *actions)]
    (root / "offsets" / "_delta_log" / f"{table.version() + 1:020}.json").write_text("".join(f"{line}\n" for line in lines))


def optimize(root: Path) -> None:
    offsets(root).optimize.z_order(["topic"], commit_properties=BY_ALICE)


def vacuum(root: Path) -> None:
    offsets(root).vacuum(dry_run=False, retention_hours=0, enforce_retention_duration=False)


def describe(root: Path) -> None:
    offsets(root).alter.set_table_description("ours now", commit_properties=BY_ALICE)


def comment(root: Path) -> None:
    offsets(root).alter.set_column_metadata("topic", {"comment": "their words"}, commit_properties=BY_ALICE)


def set_label(root: Path) -> None:
    offsets(root).alter.set_table_properties({"owner": "payments"}, raise_if_not_exists=False)


def enable_feed(root: Path) -> None:
    offsets(root).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})


def set_statistics(root: Path) -> None:
    offsets(root).alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "9"})


HARMLESS = (optimize, vacuum, describe, comment, set_label, enable_feed, set_statistics)


def add_column(root: Path) -> None:
    offsets(root).alter.add_columns([Field("note", PrimitiveType("string"))], commit_properties=BY_ALICE)


def add_constraint(root: Path) -> None:
    offsets(root).alter.add_constraint({"positive": "committed_offset > -5"}, commit_properties=BY_ALICE)


def delete(root: Path) -> None:
    offsets(root).delete("group_id = 'a'", commit_properties=BY_ALICE)


def overwrite(root: Path) -> None:
    table = pa.table(offsets(root).to_pyarrow_table()).slice(0, 1)
    write_deltalake(str(root / "offsets"), table, mode="overwrite", commit_properties=BY_ALICE)


def append_only(root: Path) -> None:
    table = offsets(root)
    table.alter.set_table_properties({"delta.appendOnly": "true"}, commit_properties=BY_ALICE)


def false_optimize(root: Path) -> None:
    """An operation with a harmless name that removes rows."""
    file = pa.table(offsets(root).get_add_actions())["path"][0].as_py()
    removal = {"path": file, "deletionTimestamp": 1, "dataChange": True}
    commit_by_hand(root, {"remove": removal}, operation="OPTIMIZE", userName="alice")


HARMFUL: dict[Callable[[Path], None], tuple[str, str]] = {
    add_column: ("ADD COLUMN", "it changes the columns note"),
    add_constraint: ("ADD CONSTRAINT", "it changes the properties delta.constraints.positive"),
    delete: ("DELETE", "it changes rows"),
    overwrite: ("WRITE", "it changes rows"),
    append_only: ("SET TBLPROPERTIES", "it changes the properties delta.appendOnly"),
    false_optimize: ("OPTIMIZE", "it changes rows"),
}


def state(root: Path) -> tuple[Any, ...]:
    table = offsets(root)
    metadata, protocol = table.metadata(), table.protocol()
    schema = {field.name: (str(field.type), field.metadata) for field in table.schema().fields}
    return metadata.description, metadata.configuration, schema, protocol.min_reader_version, protocol.min_writer_version


Foreign = Callable[[Path], None]


@pytest.mark.parametrize("is_claimed", [False, True], ids=["before the claim", "between batches"])
@pytest.mark.parametrize("foreign", HARMLESS)
def test_harmless_commits_stay(
    foreign: Foreign, is_claimed: bool, root: Path, undisturbed: dict[str, list[str]], capsys: Captured
) -> None:
    writing = applier(root)
    if is_claimed:
        writing.claim()
    before = offsets(root).version()
    foreign(root)
    made, left = offsets(root).version(), state(root)
    assert made > before
    writing.apply_rows(RANGES[2])
    assert contents(root) == undisturbed
    assert state(root) == left
    # nothing but the write of the batch
    assert offsets(root).version() == made + 1
    assert not any(each["operation"] == "RESTORE" for each in offsets(root).history(made - before + 1))
    assert capsys.readouterr().err == ""
    assert check(str(root)) == []


@pytest.mark.parametrize("is_claimed", [False, True], ids=["before the claim", "between batches"])
@pytest.mark.parametrize("foreign", HARMFUL)
def test_others_are_reverted_with_a_line(
    foreign: Foreign, is_claimed: bool, root: Path, undisturbed: dict[str, list[str]], capsys: Captured
) -> None:
    writing = applier(root)
    if is_claimed:
        writing.claim()
    left = state(root)
    foreign(root)
    version = offsets(root).version()
    writing.apply_rows(RANGES[2])
    operation, reason = HARMFUL[foreign]
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert line.startswith(f"table offsets under {root}: reverted version {version} ({operation} by alice")
    assert line.endswith(f"): {reason}\n")
    assert contents(root) == undisturbed
    assert state(root) == left
    assert check(str(root)) == []


def test_harmless_commits_before_one_that_is_not_stay(root: Path, undisturbed: dict[str, list[str]], capsys: Captured) -> None:
    describe(root)
    kept = state(root)
    delete(root)
    set_label(root)
    version = offsets(root).version()
    applier(root).apply_rows(RANGES[2])
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": reverted ")[2].partition(" (")[0] for line in lines] == [
        f"version {version - 1}",
        f"version {version}",
    ]
    assert lines[1].endswith(f"it follows version {version - 1}")
    assert contents(root) == undisturbed
    assert state(root) == kept


def test_the_next_batches_keep_what_stayed(root: Path, capsys: Captured) -> None:
    optimize(root)
    describe(root)
    kept = state(root)
    for rows in RANGES[2:]:
        applier(root).apply_rows(rows)
    maintain(str(root), LOOK, datetime.now(UTC), lambda _line: None)
    maintain(str(root), LOOK, datetime.now(UTC), lambda _line: None)
    assert state(root) == kept
    assert capsys.readouterr().err == ""


def test_maintenance_reverts_as_the_job_does(root: Path, capsys: Captured) -> None:
    expected = contents(root)["offsets"]
    delete(root)
    maintain(str(root), LOOK, datetime.now(UTC), lambda _line: None)
    assert "(DELETE by alice" in capsys.readouterr().err
    assert contents(root)["offsets"] == expected


def test_a_rollback_that_was_interrupted_is_not_repeated(root: Path, capsys: Captured) -> None:
    delete(root)
    TablesWriter.claim(TableStore(str(root)))
    version = offsets(root).version()
    assert capsys.readouterr().err.count("\n") == 1
    TablesWriter.claim(TableStore(str(root)))
    assert offsets(root).version() == version
    assert capsys.readouterr().err == ""


def test_an_entry_that_was_removed_is_not_trusted(root: Path, undisturbed: dict[str, list[str]], capsys: Captured) -> None:
    describe(root)
    table = offsets(root)
    table.create_checkpoint()
    version = table.version()
    set_label(root)
    (root / "offsets" / "_delta_log" / f"{version:020}.json").unlink()
    applier(root).apply_rows(RANGES[2])
    lines = capsys.readouterr().err
    assert f"reverted version {version} (unknown operation by an unnamed user): it has the actions unknown" in lines
    assert contents(root) == undisturbed
