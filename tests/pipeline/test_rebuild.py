"""`grouplake rebuild`: new tables from old ones or from the log, behind a pointer that readers and writers follow."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from old_tables import OldLog, old_tables
from table_contents import contents, without_nulls

from pipelines.alerts.alert_store import AlertStore
from pipelines.alerts.states import Alert, AlertKey, State, labels_of
from pipelines.cli import main
from pipelines.query.check import Violation, check
from pipelines.query.engine import Snapshot
from pipelines.query.snapshots.loading import SnapshotLoader
from pipelines.runtime.errors import AnotherWriter, TablesError, UsageError
from pipelines.runtime.timestamps import at_ms
from pipelines.tables import definitions, layout, writer
from pipelines.tables.layout import LayoutVersion, layout_of
from pipelines.tables.pointer import POINTER
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writer_lock import writer_lock
from pipelines.upkeep.backup.create import make_backup
from pipelines.upkeep.backup.restore import restore
from pipelines.upkeep.rebuild.rebuild import rebuild, return_to_old

NOW = at_ms(1_795_300_000_000)
Captured = pytest.CaptureFixture[str]


def silent(_line: str) -> None:
    """Progress that is not looked at."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return old_tables("0.1.0", tmp_path).rename(tmp_path / "tables")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> OldLog:
    return OldLog(tmp_path_factory.mktemp("log"))


@pytest.fixture(scope="module")
def fresh(log: OldLog, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return contents(log.fresh(tmp_path_factory.mktemp("fresh") / "tables"))


_STATE = tuple(name for name in definitions.KEYS if name not in definitions.FROM_TRANSACTIONS)


def state(root: Path, *names: str) -> dict[str, list[str]]:
    """Rows of tables without their batch ids, and without the offset of a simple group: that depends on the cut into batches."""
    snapshot = Snapshot.open(str(root))
    rows = {name: snapshot.query(f"SELECT * FROM {name}").to_pylist() for name in names or _STATE}
    for row in (row for found in rows.values() for row in found if row.get("group_type") == "simple"):
        row["log_offset"] = None
    return {name: sorted(str(without_nulls({**row, "batch_id": None})) for row in found) for name, found in rows.items()}


@pytest.fixture
def breaking_layout(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A later version: offsets has another type and another column, `metadata` is gone, lag_history has a further column."""
    real = definitions.table

    def table(name: str) -> definitions.TableDefinition:
        found = real(name)
        fields = list(found.schema)
        if name == "offsets":
            fields = [pa.field(f.name, pa.int64()) if f.name == "partition" else f for f in fields if f.name != "metadata"]
            fields.append(pa.field("note", pa.string()))
        elif name == "lag_history":
            fields.append(pa.field("note", pa.string()))
        return replace(found, schema=pa.schema(fields), comments={**found.comments, "note": "Note"})

    with monkeypatch.context() as patch:
        patch.setattr(definitions, "table", table)
        for module in (layout, writer):
            patch.setattr(module, "LAYOUT", LayoutVersion(2, 0))
        yield


@pytest.mark.usefixtures("breaking_layout")
def test_after_a_breaking_change(old: Path, capfd: Captured) -> None:
    with pytest.raises(UsageError, match=r"have layout 1\.0, and .* reads 2\.0: run `grouplake rebuild` on them"):
        Snapshot.open(str(old))
    assert main(["rebuild", "--tables", str(old)]) == 0
    lines = capfd.readouterr().err.splitlines()
    assert lines[-2].startswith("batch 5: tables rebuilt in ")
    assert lines[-2].endswith(
        f"_rebuilt-1, {sum(int(line.split()[1]) for line in lines[:-2])} rows; the old ones remain in {old}"
    )
    assert lines[-1].startswith(f"readers by path cannot open the old tables any more: point them to {old}/_rebuilt-1, and ")
    assert check(str(old)) == []
    snapshot = Snapshot.open(str(old))
    offsets = snapshot.query("SELECT * FROM offsets")
    assert offsets.schema.field("partition").type == pa.int64()
    assert "metadata" not in offsets.schema.names
    assert offsets["note"].null_count == offsets.num_rows == 32
    assert layout_of(TableStore(str(old)).table("batches"), str(old)) == (2, 0)


def test_from_the_old_tables_and_the_stream_continues(
    old: Path, log: OldLog, fresh: dict[str, list[str]], capfd: Captured
) -> None:
    before = contents(old)
    rebuild(str(old), None, silent)
    assert contents(old) == before
    assert check(str(old)) == []
    rows = Snapshot.open(str(old)).query("SELECT batch_id, versions FROM batches ORDER BY batch_id").to_pylist()
    assert [(row["batch_id"], bool(row["versions"])) for row in rows] == [*((n, False) for n in range(5)), (5, True)]
    assert main(["sql", "--tables", str(old), "--as-of", "3", "SELECT * FROM offsets"]) == 2
    assert "batch 3 was written before the tables" in capfd.readouterr().err
    log.apply(old)
    after = contents(old)
    assert {name: after[name] for name in definitions.FROM_RECORDS} == {name: fresh[name] for name in definitions.FROM_RECORDS}
    # the old tables are as they were
    return_to_old(str(old), silent)
    assert contents(old) == before


def test_from_the_log_where_old_tables_are_lost(old: Path, log: OldLog, fresh: dict[str, list[str]]) -> None:
    before, histories = state(old), state(old, "offset_history", "group_history", "lag_history")
    for path in (old / "groups").glob("*.parquet"):
        path.unlink()
    with pytest.raises(TablesError, match=r"are damaged: file groups/.* is missing; .*`grouplake rebuild --source ADDRESS`"):
        rebuild(str(old), None, silent)
    assert not (old / POINTER).exists()
    assert main(["rebuild", "--tables", str(old), "--source", log.address]) == 0
    assert state(old) == before
    assert state(old, *histories) == histories
    assert check(str(old)) == []
    log.apply(old)
    assert {name: len(rows) for name, rows in state(old).items()} == {name: len(fresh[name]) for name in _STATE}
    assert check(str(old)) == []


def test_a_log_that_lacks_the_position(old: Path, tmp_path: Path, capfd: Captured) -> None:
    (tmp_path / "short" / "__consumer_offsets-3").mkdir(parents=True)
    (tmp_path / "short" / "__consumer_offsets-3" / f"{0:020}.log").touch()
    assert main(["rebuild", "--tables", str(old), "--source", f"segments:{tmp_path / 'short'}"]) == 1
    line = capfd.readouterr().err.splitlines()[-1]
    assert "cannot rebuild from the log: " in line
    assert line.endswith("; without --source the old tables are copied")
    assert not (old / POINTER).exists()
    assert check(str(old)) == []


def test_open_readers_are_switched_and_writers_fenced(old: Path, log: OldLog) -> None:
    loader = SnapshotLoader("", str(old))
    before = loader.last_batch()
    assert before is not None
    first = loader.load(before)
    job = TablesWriter.claim(TableStore(str(old)))
    rebuild(str(old), None, silent)
    log.apply(old)
    batch = loader.last_batch()
    assert batch is not None
    assert batch.batch_id > before.batch_id + 1
    assert len(loader.load(batch).groups) >= len(first.groups)
    with pytest.raises(AnotherWriter, match="another job took over the tables"):
        job.begin()


def test_the_old_tables_are_deleted_on_request(old: Path, log: OldLog, capfd: Captured) -> None:
    assert main(["rebuild", "--tables", str(old), "--delete-old"]) == 2
    assert "were not rebuilt: nothing to delete" in capfd.readouterr().err
    (old / "alerts").mkdir()
    (old / "alerts" / "kept").touch()
    for _ in range(2):
        rebuild(str(old), None, silent)
    before = contents(old)
    assert main(["rebuild", "--tables", str(old), "--delete-old"]) == 0
    assert sorted(path.name for path in old.iterdir()) == ["_rebuilt-2", POINTER, "_writer.lock", "alerts"]
    assert contents(old) == before
    log.apply(old)
    assert check(str(old)) == []


def test_an_interrupted_rebuild_changes_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(old)
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.upkeep.rebuild.rebuild.check", lambda _root: [Violation("some rule", 1, "a row")])
        with pytest.raises(TablesError, match=r"are not consistent \(some rule\); the old ones remain in use"):
            rebuild(str(old), None, silent)
    assert contents(old) == before
    rebuild(str(old), None, silent)
    assert contents(old) == before
    assert json.loads((old / POINTER).read_text()) == {"folder": "_rebuilt-1", "old_tables": "blocked"}


def test_rebuilt_tables_are_backed_up(old: Path, tmp_path: Path) -> None:
    rebuild(str(old), None, silent)
    make_backup(str(old), str(tmp_path / "backups"), NOW, silent)
    assert restore(str(tmp_path / "restored"), str(tmp_path / "backups"), None, silent)[1] == []
    assert contents(tmp_path / "restored") == contents(old)


def test_tables_of_alerts_stay_and_are_backed_up(old: Path, tmp_path: Path) -> None:
    alert = Alert(AlertKey("Lag", labels_of({"group": "g"})), State.FIRING, labels_of({}), labels_of({}), (), 1)
    AlertStore(str(old)).commit({alert.key: alert}, [], 0)
    rebuild(str(old), None, silent)
    count = "SELECT count(*) AS n FROM alerts"
    assert Snapshot.open(str(old)).query(count).to_pylist() == [{"n": 1}]
    assert Snapshot.open(str(old)).reopened().query(count).to_pylist() == [{"n": 1}]
    make_backup(str(old), str(tmp_path / "backups"), NOW, silent)
    assert restore(str(tmp_path / "restored"), str(tmp_path / "backups"), None, silent)[1] == []
    assert Snapshot.open(str(tmp_path / "restored")).query(count).to_pylist() == [{"n": 1}]
    with pytest.raises(UsageError, match="it is in the folder of the tables"):
        make_backup(str(old), str(old / "backups"), NOW, silent)


def test_not_beside_a_job(old: Path) -> None:
    with writer_lock(str(old), "grouplake run"), pytest.raises(AnotherWriter, match="are being written by `grouplake run`"):
        rebuild(str(old), None, silent)


@pytest.mark.parametrize("content", ["", "[]", '{"folder": "../other"}', '{"folder": "_rebuilt-1/.."}', '{"folder": 1}'])
def test_a_pointer_leads_nowhere_else(old: Path, content: str) -> None:
    (old / POINTER).write_text(content)
    with pytest.raises(TablesError, match="names no folder of rebuilt tables: restore this file, "):
        Snapshot.open(str(old))


def test_a_pointer_is_not_a_link(old: Path, tmp_path: Path) -> None:
    shutil.copyfile("/etc/hostname", tmp_path / "elsewhere")
    (old / POINTER).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TablesError, match=f"cannot read .*{POINTER}"):
        Snapshot.open(str(old))
