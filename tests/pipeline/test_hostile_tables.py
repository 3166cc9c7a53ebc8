"""Folders of tables from outside: no file beyond the folder is read, for any content of their Delta logs."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from log_builder import Log, member
from patience import PATIENCE_SECONDS
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.cli import main
from pipelines.tables.location import local_folder
from pipelines.tables.store import APP_ID, TableStore

SECRET = "a-row-of-another-user"
COMMIT = f"{1:020}.json"
CHECKPOINT = f"{1:020}.checkpoint.parquet"

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables as Grouplake writes them, one of them with a checkpoint; and beside them a file of the same schema."""
    root = tmp_path_factory.mktemp("sound")
    log = Log(partition=3)
    log.commit(0, 5, group="g")
    log.group([member()], group="g")
    applied(log, Era.named("4"), [], str(root / "tables"))
    offsets = DeltaTable(str(root / "tables" / "offsets"))
    rows = offsets.to_pyarrow_table()
    named = pa.array([SECRET] * rows.num_rows, rows.schema.field("group_id").type)
    pq.write_table(rows.set_column(0, rows.schema.field("group_id"), named), root / "secret.parquet")
    offsets.create_checkpoint()
    return root


@pytest.fixture
def tables(sound: Path, tmp_path: Path) -> Path:
    """A copy for a test to manipulate: DIR/tables, and a file in DIR that must not be read."""
    shutil.copytree(sound, tmp_path / "copy")
    return tmp_path / "copy" / "tables"


def drop_checkpoint(tables: Path) -> Path:
    """The log of `offsets`, without checkpoint."""
    log = tables / "offsets" / "_delta_log"
    (log / CHECKPOINT).unlink()
    (log / "_last_checkpoint").unlink()
    return log


def change_add(commit: Path, **fields: Any) -> None:
    """Change the `add` actions of a commit."""
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"].update(fields)
            action["add"].pop("stats", None)
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))


QUERY = ["sql", "SELECT * FROM offsets"]
READERS = (QUERY, [*QUERY, "--as-of", "0"], ["check"])


def refused(tables: Path, capsys: Captured, *commands: list[str]) -> str:
    """The one line that commands print."""
    lines = set()
    for command in commands or (QUERY,):
        assert main([*command, "--tables", str(tables)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert SECRET not in err
        assert err.count("\n") == 1
        lines.add(err)
    assert len(lines) == 1
    return lines.pop()


def test_what_is_sound_is_read(tables: Path, capsys: Captured) -> None:
    assert main(["sql", "--tables", str(tables), "SELECT count(*) FROM offsets"]) == 0
    assert main(["check", "--tables", str(tables)]) == 0
    (tables.parent / "elsewhere").symlink_to(tables)
    assert main(["check", "--tables", str(tables.parent / "elsewhere")]) == 0
    assert main(["check", "--tables", tables.as_uri()]) == 0
    assert capsys.readouterr().err == ""


def test_readers_load_neither_spark_nor_a_configuration(tables: Path) -> None:
    program = "\n".join(
        (
            "import sys",
            "from pipelines.cli import main",
            "assert main(['sql', 'SELECT * FROM committed_offsets', '--tables', sys.argv[1]]) == 0",
            "assert main(['check', '--tables', sys.argv[1]]) == 0",
            "print({'pyspark', 'py4j', 'kafka', 'pipelines.runtime.configuration'} & sys.modules.keys())",
        )
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, tables], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    assert ran.stdout.endswith("set()\n")


@pytest.mark.parametrize(
    "name",
    [
        "{file}",
        "file://{file}",
        "FILE://{file}",
        "file:{file}",
        "file://localhost{file}",
        "\tfile://{file}",
        "fi\nle://{file}",
        "../../secret.parquet",
        "%2e%2e/%2E%2e/secret.parquet",
        ".%2e/.%2e/secret.parquet",
        "..\\..\\secret.parquet",
        ".\t./.\t./secret.parquet",
        "../../secret.parquet?a=1#b",
        "x/../../../secret.parquet",
        "//{file}",
        "s3://bucket/secret.parquet",
        "http://127.0.0.1:9/secret.parquet",
        "/etc/passwd",
        "sub/part.parquet",
        "",
    ],
)
def test_data_files_elsewhere(name: str, tables: Path, capsys: Captured) -> None:
    secret = tables.parent / "secret.parquet"
    path = name.format(file=secret)
    change_add(drop_checkpoint(tables) / COMMIT, path=path, size=secret.stat().st_size)
    assert f"offsets: it names the file {path!r}, unlike the tables of Grouplake; it was not read" in refused(tables, capsys)


def test_data_files_elsewhere_in_a_checkpoint(tables: Path, capsys: Captured) -> None:
    secret = tables.parent / "secret.parquet"
    spoil_checkpoint(
        tables / "offsets" / "_delta_log" / CHECKPOINT,
        lambda row: row["add"] and row["add"].update(path=str(secret), size=secret.stat().st_size, stats=None),
    )
    assert f"offsets: it names the file {str(secret)!r}" in refused(tables, capsys, *READERS)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("offsets", "../moved"),
        ("offsets/_delta_log", "../../moved"),
        ("offsets/part.parquet", "../../secret.parquet"),
        ("offsets/part.parquet", "/dev/zero"),
        (f"offsets/_delta_log/{COMMIT}", "/etc/passwd"),
        (f"offsets/_delta_log/{CHECKPOINT}", "/etc/passwd"),
        ("offsets/_delta_log/_last_checkpoint", "/etc/passwd"),
    ],
)
def test_symbolic_links(name: str, target: str, tables: Path, capsys: Captured) -> None:
    path = tables / name
    if path.is_dir():
        path.rename(tables.parent / "moved")
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    line = refused(tables, capsys, *READERS)
    assert f"{path}: it is" in line
    assert "root:" not in line


def test_pipes(tables: Path, capsys: Captured) -> None:
    os.mkfifo(tables / "offsets" / "_delta_log" / f"{2:020}.json")
    assert "it is not a regular file" in refused(tables, capsys)


@pytest.mark.parametrize("key", ['"deletionVector"', '"deletion\\u0056ector"'])
@pytest.mark.parametrize("protocol", [1, 3])
def test_deletion_vectors(key: str, protocol: int, tables: Path, capsys: Captured) -> None:
    log = drop_checkpoint(tables)
    vector = {"storageType": "p", "pathOrInlineDv": "file:///etc/passwd", "offset": 1, "sizeInBytes": 40, "cardinality": 1}
    change_add(log / COMMIT, marked=vector)
    (log / COMMIT).write_text((log / COMMIT).read_text().replace('"marked"', key))
    if protocol == 3:
        first = log / f"{0:020}.json"
        text = first.read_text().replace('"minReaderVersion":1', '"minReaderVersion":3,"readerFeatures":["deletionVectors"]')
        first.write_text(text.replace('"minWriterVersion":2', '"minWriterVersion":7,"writerFeatures":["deletionVectors"]'))
    assert f"{log / COMMIT}: it has a deletionVector" in refused(tables, capsys)


def test_deletion_vectors_in_a_checkpoint(tables: Path, capsys: Captured) -> None:
    path = tables / "offsets" / "_delta_log" / CHECKPOINT
    vector = {"storageType": "p", "pathOrInlineDv": "file:///etc/passwd", "offset": 1, "sizeInBytes": 40, "cardinality": 1}
    spoil_checkpoint(path, lambda row: row["add"] and row["add"].update(deletionVector=vector))
    assert f"{path}: it has a deletionVector" in refused(tables, capsys)


def test_sidecars_of_a_checkpoint(tables: Path, capsys: Captured) -> None:
    path = tables / "offsets" / "_delta_log" / CHECKPOINT
    sidecar = {"path": (tables.parent / "secret.parquet").as_uri(), "sizeInBytes": 1, "modificationTime": 1, "tags": None}
    spoil_checkpoint(path, lambda row: row["add"] and row.update(add=None, sidecar=sidecar))
    assert f"{path}: it has a sidecar" in refused(tables, capsys)


def spoil_checkpoint(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    rows = pq.read_table(path)
    changed = rows.to_pylist()
    for row in changed:
        change(row)
    pq.write_table(pa.Table.from_pylist(changed, rows.schema), path)


@pytest.mark.parametrize(
    "name",
    [
        f"{1:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
        f"{1:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet",
        f"{1:020}.checkpoint.0000000001.0000000002.parquet",
        f"{0:020}.{1:020}.compacted.json",
        "1.json",
    ],
)
def test_other_forms_of_the_log(name: str, tables: Path, capsys: Captured) -> None:
    path = tables / "offsets" / "_delta_log" / name
    path.write_text('{"sidecar":{"path":"file:///etc/passwd","sizeInBytes":1,"modificationTime":1}}\n')
    assert f"{path}: it is a multi-part checkpoint, a v2 checkpoint or a compacted log" in refused(tables, capsys)


def test_an_older_checkpoint_that_a_reader_may_be_pointed_to(tables: Path, capsys: Captured) -> None:
    log = drop_checkpoint(tables)
    (log / f"{0:020}.checkpoint.parquet").write_bytes(b"PAR1")
    shutil.copy(tables.parent / "secret.parquet", log / CHECKPOINT)
    (log / "_last_checkpoint").write_text('{"version":0,"size":1}')
    assert f"{0:020}.checkpoint.parquet: it is not a valid checkpoint" in refused(tables, capsys)


def test_features_that_another_reader_would_need(tables: Path, capsys: Captured) -> None:
    log = drop_checkpoint(tables)
    first = log / f"{0:020}.json"
    first.write_text(
        first.read_text()
        .replace('"minReaderVersion":1', '"minReaderVersion":2')
        .replace('"minWriterVersion":2', '"minWriterVersion":5')
    )
    assert "it needs a reader of protocol 2" in refused(tables, capsys)


def test_values_that_look_like_it_are_read(tables: Path) -> None:
    log = drop_checkpoint(tables)
    actions = [json.loads(line) for line in (log / COMMIT).read_text().splitlines()]
    actions[0]["commitInfo"]["about"] = '"deletionVector" \\u0000 "sidecar"'
    actions[0]["commitInfo"]["deletionVector"] = None
    (log / COMMIT).write_text("".join(json.dumps(action) + "\n" for action in actions))
    assert TableStore(str(tables)).table("offsets").version() == 1


def rewrite_batches(tables: Path, rows: pa.Table) -> None:
    properties = CommitProperties(app_transactions=[Transaction(APP_ID, 0)])
    shutil.rmtree(tables / "batches")
    write_deltalake(str(tables / "batches"), rows, commit_properties=properties)


@pytest.mark.parametrize("version", [-1, 2, 1 << 62])
def test_versions_that_a_table_does_not_have(version: int, tables: Path, capsys: Captured) -> None:
    rows = DeltaTable(str(tables / "batches")).to_pyarrow_table()
    versions = pa.array([[("offsets", version)]], rows.schema.field("versions").type)
    rewrite_batches(tables, rows.set_column(rows.schema.get_field_index("versions"), rows.schema.field("versions"), versions))
    assert main([*QUERY, "--tables", str(tables)]) == 1
    assert capsys.readouterr().err == f"grouplake: {tables}/offsets has no version {version}: use 0 to 1\n"


def test_batches_of_another_form(tables: Path, capsys: Captured) -> None:
    rewrite_batches(tables, pa.table({"batch_id": pa.array([0], pa.int64())}))
    assert main([*QUERY, "--tables", str(tables)]) == 1
    assert capsys.readouterr().err.startswith("grouplake: cannot read the table batches (KeyError: ")


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        ("/data/tables", "/data/tables"),
        ("tables", "tables"),
        ("file:///data/my%20tables", "/data/my tables"),
        ("FILE:/data/tables", "/data/tables"),
        ("s3://bucket/tables", None),
        ("abfss://c@a.dfs.core.windows.net/tables", None),
    ],
)
def test_local_folders(uri: str, folder: str | None) -> None:
    assert local_folder(uri) == (None if folder is None else Path(folder))
