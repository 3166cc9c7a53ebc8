"""A protocol that another program has raised: named by the job and by every command, and reverted in place by one command."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, TableFeatures
from doctor_findings import Doctor
from table_contents import contents
from three_batches import RANGES, applier

from pipelines.alerts.alert_store import AlertStore
from pipelines.batch.without_records import write_empty_batch
from pipelines.cli import main
from pipelines.query.check import check
from pipelines.runtime.errors import ForeignFeature, TablesError
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.upkeep.rebuild.revert_features import revert_features

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def root(two_batches: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(two_batches, tmp_path / "tables"))


BY_ALICE = CommitProperties(custom_metadata={"userName": "alice"})


def add_feature(root: Path, name: str, feature: TableFeatures) -> None:
    table = DeltaTable(str(root / name))
    table.alter.add_feature(feature, allow_protocol_versions_increase=True, commit_properties=BY_ALICE)


def by_hand(root: Path, name: str, *actions: dict[str, Any], operation: str = "SET TBLPROPERTIES") -> None:
    """A commit as an engine with more features writes it."""
    log = root / name / "_delta_log"
    version = max(int(path.stem) for path in log.glob("*.json") if path.stem.isdigit()) + 1
    info = {"commitInfo": {"operation": operation, "userName": "alice", "timestamp": 1_772_359_200_000}}
    (log / f"{version:020}.json").write_text("".join(json.dumps(action) + "\n" for action in (info, *actions)))


def raised(feature: str) -> dict[str, Any]:
    lists = {"readerFeatures": [feature], "writerFeatures": [feature]}
    return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **lists}}


def metadata(root: Path, name: str, **properties: str) -> dict[str, Any]:
    found = DeltaTable(str(root / name))
    schema = json.loads(found.schema().to_json())
    for number, column in enumerate(schema["fields"]):
        column["metadata"] |= {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": column["name"]}
    return {
        "metaData": {
            "id": str(found.metadata().id),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(schema),
            "partitionColumns": [],
            "configuration": {**found.metadata().configuration, **{k.replace("__", "."): v for k, v in properties.items()}},
        }
    }


def deletion_vectors(root: Path, name: str = "offsets") -> None:
    add_feature(root, name, TableFeatures.DeletionVectors)


def column_mapping(root: Path, name: str = "offsets") -> None:
    legacy = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    by_hand(root, name, legacy, metadata(root, name, delta__columnMapping__mode="name"))


def row_tracking(root: Path, name: str = "offsets") -> None:
    add_feature(root, name, TableFeatures.RowTracking)


def unknown_feature(root: Path, name: str = "offsets") -> None:
    by_hand(root, name, raised("notYetInvented"))


def deleted_by_vector(root: Path, name: str = "offsets") -> None:
    deletion_vectors(root, name)
    file = pa.table(DeltaTable(str(root / name)).get_add_actions()).to_pylist()[0]
    vector = {"storageType": "i", "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    plain = {"path": file["path"], "partitionValues": {}, "size": file["size_bytes"], "dataChange": True}
    added = {**plain, "modificationTime": 1, "deletionVector": {**vector, "sizeInBytes": 40, "cardinality": 6}}
    by_hand(root, name, {"remove": {**plain, "deletionTimestamp": 1}}, {"add": added}, operation="DELETE")


Feature = Callable[..., None]

#: The program's commit → the operation that the line names, and what Grouplake cannot handle.
FEATURES = {
    deletion_vectors: ("ADD FEATURE", "it needs a reader of protocol 3 (deletionVectors)"),
    column_mapping: ("SET TBLPROPERTIES", "it needs a reader of protocol 2 (columnMapping)"),
    row_tracking: ("ADD FEATURE", "it needs a writer of protocol 7 (rowTracking)"),
    unknown_feature: ("SET TBLPROPERTIES", "it needs a reader of protocol 3 (notYetInvented)"),
    deleted_by_vector: ("ADD FEATURE", "it needs a reader of protocol 3 (deletionVectors)"),
}


def said(line: str, root: Path, feature: Feature, version: int, table: str = "offsets") -> bool:
    """Whether a line names table, commit, feature, user, and the command that reverts it."""
    operation, problem = FEATURES[feature]
    start = f"table {table} under {root}: {problem} since version {version} ({operation} by alice"
    return start in line and f"grouplake rebuild --tables {root} --revert-features" in line


def raise_protocol(root: Path, feature: Feature, table: str = "offsets") -> int:
    """Returns the version that raises it."""
    version = DeltaTable(str(root / table)).version() + 1
    feature(root, table)
    return version


@pytest.mark.parametrize("is_claimed", [False, True], ids=["before the claim", "between batches"])
@pytest.mark.parametrize("feature", FEATURES)
def test_the_job_names_it_and_goes_on_once_it_is_reverted(
    feature: Feature, is_claimed: bool, root: Path, undisturbed: dict[str, list[str]]
) -> None:
    writing = applier(root)
    if is_claimed:
        writing.claim()
    before = contents(root)
    version = raise_protocol(root, feature)
    log = len(list((root / "offsets" / "_delta_log").iterdir()))
    with pytest.raises(ForeignFeature) as error:
        writing.apply_rows(RANGES[2])
    assert said(str(error.value), root, feature, version)
    # nothing was written
    assert len(list((root / "offsets" / "_delta_log").iterdir())) == log
    lines: list[str] = []
    assert revert_features(str(root), lines.append) == ["offsets"]
    assert any(f"reverted version {version} ({FEATURES[feature][0]} by alice" in line for line in lines)
    protocol = DeltaTable(str(root / "offsets")).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert contents(root) == before
    applier(root).apply_rows(RANGES[2])
    assert contents(root) == undisturbed
    assert check(str(root)) == []
    assert revert_features(str(root), lines.append) == []


def test_a_table_that_the_batch_does_not_write_is_named_at_once(root: Path) -> None:
    writing = applier(root)
    writing.claim()
    version = raise_protocol(root, deletion_vectors, "quarantine")
    with pytest.raises(ForeignFeature) as error:
        writing.apply_rows(RANGES[2])
    assert said(str(error.value), root, deletion_vectors, version, "quarantine")


COMMANDS = {
    "check": ["check"],
    "maintain": ["maintain"],
    "sql": ["sql", "SELECT * FROM all_batches"],
    "backup": ["backup", "--to", "BACKUPS"],
    "rebuild": ["rebuild"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
@pytest.mark.parametrize("feature", [deletion_vectors, column_mapping, unknown_feature])
def test_every_command_has_the_same_line(feature: Feature, command: list[str], root: Path, capsys: Captured) -> None:
    version = raise_protocol(root, feature, "batches")
    arguments = [each.replace("BACKUPS", str(root.parent / "backups")) for each in command]
    assert main([*arguments, "--tables", str(root)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said(err, root, feature, version, "batches")


@pytest.mark.parametrize("table", ["offsets", "batches", "alerts"])
@pytest.mark.parametrize("feature", [deletion_vectors, column_mapping, row_tracking, unknown_feature])
def test_doctor_has_it_as_a_problem(feature: Feature, table: str, root: Path, capsys: Captured) -> None:
    if table == "alerts":
        AlertStore(str(root))
    version = raise_protocol(root, feature, table)
    found = Doctor(capsys).examine("--tables", str(root))
    problems = [row["found"] for row in found.rows if row["area"] == "tables" and row["mark"] == "problem"]
    assert len(problems) == 1
    assert said(problems[0], root, feature, version, table)
    assert revert_features(str(root), lambda _line: None) == [table]
    assert Doctor(capsys).examine("--tables", str(root)).of("tables", "features")[0][0] == "ok"


def test_readers_of_the_last_batch_do_not_need_the_newest_version(root: Path, capsys: Captured) -> None:
    expected = contents(root)
    deleted_by_vector(root)
    assert contents(root) == expected
    assert main(["sql", "SELECT count(*) FROM offsets", "--tables", str(root)]) == 0
    assert main(["backup", "--tables", str(root), "--to", str(root.parent / "backups")]) == 0
    assert main(["check", "--tables", str(root)]) == 2
    assert said(capsys.readouterr().err, root, deleted_by_vector, DeltaTable(str(root / "offsets")).version() - 1)


def test_a_feature_that_is_readable_is_read_and_kept(root: Path, undisturbed: dict[str, list[str]], capsys: Captured) -> None:
    for name in ("offsets", "batches", "offset_history"):
        add_feature(root, name, TableFeatures.TimestampWithoutTimezone)
    assert main(["check", "--tables", str(root)]) == 0
    applier(root).apply_rows(RANGES[2])
    assert contents(root) == undisturbed
    assert DeltaTable(str(root / "offsets")).protocol().reader_features == ["timestampNtz"]
    assert main(["maintain", "--tables", str(root)]) == 0
    assert contents(root)["offsets"] == undisturbed["offsets"]
    assert "reverted" not in capsys.readouterr().err


@pytest.mark.parametrize("feature", [deletion_vectors, column_mapping])
def test_batches_become_readable_again(feature: Feature, root: Path, undisturbed: dict[str, list[str]]) -> None:
    raise_protocol(root, feature, "batches")
    assert revert_features(str(root), lambda _line: None) == ["batches"]
    applier(root).apply_rows(RANGES[2])
    assert contents(root) == undisturbed
    assert check(str(root)) == []


def go_on_with(root: Path, feature: Feature) -> None:
    """An earlier version restored the rows, kept the protocol, and named the result in its next batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.tables.store.expect_readable_protocol", lambda *_: None)
        patch.setattr("pipelines.tables.containment.expect_readable_protocol", lambda *_: None)
        patch.setattr("pipelines.tables.writer.expect_writable_protocol", lambda *_: None)
        for name in ("offsets", "batches"):
            raise_protocol(root, feature, name)
        offsets = DeltaTable(str(root / "offsets"))
        writer = TablesWriter.claim(TableStore(str(root)), replaced={"offsets": offsets.version()})
        writer.begin()
        last = writer.last
        assert last is not None
        write_empty_batch(writer, last, datetime.now(UTC))


def test_tables_that_an_earlier_version_went_on_with(root: Path, undisturbed: dict[str, list[str]]) -> None:
    expected = contents(root)
    go_on_with(root, deletion_vectors)
    with pytest.raises(ForeignFeature):
        contents(root)
    assert revert_features(str(root), lambda _line: None) == ["batches", "offsets"]
    assert contents(root) == expected
    applier(root).apply_rows(RANGES[2])
    assert contents(root) == undisturbed
    assert check(str(root)) == []


def test_files_in_subfolders_are_refused_before_a_change(root: Path) -> None:
    """With column mapping, delta-rs writes the rows of `batches` there, where Grouplake reads no file."""
    go_on_with(root, column_mapping)
    version = DeltaTable(str(root / "batches")).version()
    with pytest.raises(
        TablesError, match=r"cannot revert table batches under .*: it names the file '../part-.*'; restore a backup"
    ):
        revert_features(str(root), lambda _line: None)
    assert DeltaTable(str(root / "batches")).version() == version


def test_an_interrupted_command_is_repeated(root: Path, undisturbed: dict[str, list[str]]) -> None:
    raise_protocol(root, deletion_vectors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TablesWriter, "claim", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            revert_features(str(root), lambda _line: None)
    revert_features(str(root), lambda _line: None)
    applier(root).apply_rows(RANGES[2])
    assert contents(root) == undisturbed


def test_the_command(root: Path, capsys: Captured) -> None:
    version = raise_protocol(root, deletion_vectors)
    assert main(["rebuild", "--tables", str(root), "--revert-features"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"table offsets under {root}: reverted version {version} (ADD FEATURE by alice")
    assert lines[1].startswith(f"table offsets under {root}: version {version + 1} is what version {version - 1} was")
    assert lines[2].endswith("features reverted; the job continues at its position")
    assert main(["rebuild", "--tables", str(root), "--revert-features"]) == 0
    assert "has a feature to revert" in capsys.readouterr().err
    assert main(["rebuild", "--tables", str(root), "--revert-features", "--delete-old"]) == 2


def test_tables_without_a_batch(tmp_path: Path) -> None:
    TableStore(str(tmp_path)).create()
    raise_protocol(tmp_path, deletion_vectors)
    assert revert_features(str(tmp_path), lambda _line: None) == ["offsets"]
    applier(tmp_path).apply_rows(RANGES[0])
    assert check(str(tmp_path)) == []


def test_files_that_are_missing_are_reported_before_a_change(root: Path) -> None:
    raise_protocol(root, deletion_vectors)
    version = DeltaTable(str(root / "offsets")).version()
    for path in (root / "offsets").glob("*.parquet"):
        path.unlink()
    with pytest.raises(Exception, match=r"file offsets/.* is missing"):
        revert_features(str(root), lambda _line: None)
    assert DeltaTable(str(root / "offsets")).version() == version


def test_an_object_store_reverts_what_delta_rs_can(
    root: Path, undisturbed: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same commands, with the part of the code for object stores."""
    monkeypatch.setattr("pipelines.upkeep.rebuild.revert_features.local_folder", lambda _uri: None)
    raise_protocol(root, deletion_vectors)
    raise_protocol(root, column_mapping, "offset_history")
    assert sorted(revert_features(str(root), lambda _line: None)) == ["offset_history", "offsets"]
    applier(root).apply_rows(RANGES[2])
    assert contents(root) == undisturbed
    raise_protocol(root, row_tracking)
    with pytest.raises(TablesError, match=r"cannot revert table offsets under .*rowTracking|RowTracking"):
        revert_features(str(root), lambda _line: None)
