"""Backups of one batch while a job writes, their check, and restored tables that continue."""

import itertools
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from object_stores import moto_server
from old_tables import OldLog, old_tables
from store_roots import lead_to
from table_contents import contents

from pipelines.cli import main
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import TablesError, UsageError
from pipelines.tables import definitions
from pipelines.tables.folder_files import FolderFiles
from pipelines.tables.layout import LAYOUT
from pipelines.tables.store import TableStore
from pipelines.upkeep.backup.create import make_backup
from pipelines.upkeep.backup.manifest import manifests
from pipelines.upkeep.backup.restore import restore
from pipelines.upkeep.maintain import Maintenance, maintain

NOW = datetime(2026, 11, 23, tzinfo=UTC)
Captured = pytest.CaptureFixture[str]


def silent(_line: str) -> None:
    """Progress that is not looked at."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> OldLog:
    return OldLog(tmp_path_factory.mktemp("log"))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Old tables and a backup of them."""
    folder = tmp_path_factory.mktemp("prepared")
    root = old_tables("0.1.0", folder).rename(folder / "tables")
    make_backup(str(root), str(folder / "backups"), NOW, silent)
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "copy"))


@pytest.fixture(params=["folder", "store"])
def roots(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Addresses of new folders, local or in an object store."""
    if request.param == "folder":
        numbers = itertools.count()
        yield lambda: str(folder / f"root-{next(numbers)}")
        return
    with moto_server() as server:
        lead_to(server, monkeypatch)
        yield server.new_root


@pytest.mark.long
def test_restored_tables_equal_those_of_the_batch(folder: Path, roots: Callable[[], str]) -> None:
    backups, restored = roots(), roots()
    make_backup(str(folder / "tables"), backups, NOW, silent)
    backup, findings = restore(restored, backups, None, silent)
    assert findings == []
    assert (backup.batch_id, backup.layout) == (4, "1.0")
    assert contents(restored) == contents(folder / "tables")


@pytest.mark.long
def test_the_stream_continues_where_the_backup_ends(folder: Path, log: OldLog, capfd: Captured) -> None:
    # the tables go on after the backup, and are lost
    log.apply(folder / "tables", 0.8)
    shutil.rmtree(folder / "tables")
    backups, restored = str(folder / "backups"), folder / "restored"
    assert main(["restore", "--from", backups, "--tables", str(restored), "--source", log.address]) == 0
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("restored batch 4 of ")
    behind = sum(log.ends.values()) - sum(TableStore(str(restored)).last_batch().next_offsets.values())  # type: ignore[union-attr]  # restored
    assert lines[1].endswith(f"`grouplake run` will read {behind} offsets")
    log.apply(restored)
    fresh = contents(log.fresh(folder / "fresh"))
    assert {name: contents(restored)[name] for name in definitions.FROM_RECORDS} == {
        n: fresh[n] for n in definitions.FROM_RECORDS
    }
    assert check(str(restored)) == []


def test_a_log_without_the_position(folder: Path, tmp_path: Path, capfd: Captured) -> None:
    (tmp_path / "log" / "__consumer_offsets-3").mkdir(parents=True)
    (tmp_path / "log" / "__consumer_offsets-3" / f"{0:020}.log").touch()
    restored = folder / "restored"
    source = f"segments:{tmp_path / 'log'}"
    assert main(["restore", "--from", str(folder / "backups"), "--tables", str(restored), "--source", source]) == 1
    assert "the tables are restored, but `grouplake run` cannot continue them: " in capfd.readouterr().err
    assert check(str(restored)) == []


@pytest.mark.long
def test_a_backup_while_a_job_writes(tmp_path: Path, log: OldLog) -> None:
    """Every backup has the state of one batch, whatever the job and its maintenance do meanwhile."""
    root, backups, states = tmp_path / "tables", str(tmp_path / "backups"), dict[str, int]()
    log.apply(root, 0.1)
    ended = threading.Event()

    def job() -> None:
        for share in (0.3, 0.5, 0.7):
            log.apply(root, share)
            maintain(str(root), Maintenance(9_999, 0, 16), NOW, silent)
        ended.set()

    thread = threading.Thread(target=job)
    thread.start()
    is_last = False
    while not is_last:
        is_last = ended.is_set()
        # maintain.vacuum_hours is 0 here, so that files are removed while they are copied
        with suppress(TablesError):
            made = make_backup(str(root), backups, NOW + timedelta(seconds=len(states)), silent)
            states[made.id] = made.batch_id
    thread.join()
    assert [each.id for each in manifests(FolderFiles(backups))] == sorted(states)
    for backup_id, batch_id in (*states.items(),)[:: max(1, len(states) // 3)]:
        restored = tmp_path / backup_id
        assert restore(str(restored), backups, backup_id, silent)[1] == []
        assert Snapshot.open(str(restored)).batch.batch_id == batch_id
    restore(str(tmp_path / "last"), backups, None, silent)
    assert contents(tmp_path / "last") == contents(root)


def test_a_further_backup_copies_new_files_only(folder: Path, log: OldLog) -> None:
    backups = folder / "backups"
    before = set(backups.rglob("*.parquet"))
    lines: list[str] = []
    make_backup(str(folder / "tables"), str(backups), NOW + timedelta(hours=1), lines.append)
    assert lines[0].endswith("; new: 0 files, 0.0 MB")
    log.apply(folder / "tables")
    made = make_backup(str(folder / "tables"), str(backups), NOW + timedelta(hours=2), lines.append)
    new = set(backups.rglob("*.parquet")) - before
    assert 0 < len(new) < len(made.files)
    assert made.layout == str(LAYOUT)


def test_old_backups_are_removed_with_their_files(folder: Path, log: OldLog, capfd: Captured) -> None:
    log.apply(folder / "tables")
    arguments = ["backup", "--tables", str(folder / "tables"), "--to", str(folder / "backups")]
    assert main(arguments) == 0
    both = set((folder / "backups" / "objects").rglob("*.*"))
    assert main([*arguments, "--keep", "1"]) == 0
    (kept,) = manifests(FolderFiles(str(folder / "backups")))
    left = {str(path.relative_to(folder / "backups")) for path in (folder / "backups" / "objects").rglob("*") if path.is_file()}
    assert left == {file.object for file in kept.files.values()}
    assert len(left) < len(both)
    assert main(["backup", "--to", str(folder / "backups"), "--check"]) == 0
    assert capfd.readouterr().out == "1 backups are complete\n"


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (truncate, r"has \d+ bytes instead of \d+"),
        (flip, r"has another checksum than its manifest"),
        (Path.unlink, r"is missing"),
    ],
)
@pytest.mark.parametrize("where", ["objects/offsets/*.parquet", "objects/batches/_delta_log/*.json"])
def test_damage_is_found(folder: Path, where: str, damage: Callable[[Path], None], line: str, capfd: Captured) -> None:
    damage(sorted((folder / "backups").glob(where))[0])
    assert main(["backup", "--to", str(folder / "backups"), "--check"]) == 1
    (found,) = capfd.readouterr().out.splitlines()
    assert found.startswith(where.partition("*")[0])
    with pytest.raises(TablesError, match=rf"cannot restore .*{line}; use another backup"):
        restore(str(folder / "restored"), str(folder / "backups"), None, silent)
    assert not TableStore(str(folder / "restored")).exists()


def test_a_damaged_source_is_not_backed_up(folder: Path) -> None:
    (uri, *_) = TableStore(str(folder / "tables")).table("offsets").file_uris()
    truncate(Path(uri))
    with pytest.raises(TablesError, match=r"the tables under .* are damaged: file .* bytes, but the log of its table names"):
        make_backup(str(folder / "tables"), str(folder / "other"), NOW, silent)
    assert manifests(FolderFiles(str(folder / "other"))) == []


def test_an_interrupted_restore_leaves_no_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = iter(range(40))
    real = FolderFiles.write

    def write(self: FolderFiles, name: str, content: bytes) -> None:
        if next(files, None) is None:
            raise KeyboardInterrupt
        real(self, name, content)

    monkeypatch.setattr(FolderFiles, "write", write)
    with pytest.raises(KeyboardInterrupt):
        restore(str(folder / "restored"), str(folder / "backups"), None, silent)
    assert not TableStore(str(folder / "restored")).exists()
    with pytest.raises(UsageError, match=r"cannot restore into .*: it has the file"):
        restore(str(folder / "restored"), str(folder / "backups"), None, silent)


def test_wrong_folders(folder: Path) -> None:
    with pytest.raises(UsageError, match="it is in the folder of the tables"):
        make_backup(str(folder / "tables"), str(folder / "tables" / "backups"), NOW, silent)
    with pytest.raises(UsageError, match="no backup under"):
        restore(str(folder / "new"), str(folder / "tables"), None, silent)
    with pytest.raises(UsageError, match=r"no backup '1' under .*: use one of 20261123T000000Z-4"):
        restore(str(folder / "new"), str(folder / "backups"), "1", silent)
    with pytest.raises(UsageError, match="it has the file"):
        restore(str(folder / "tables"), str(folder / "backups"), None, silent)
    with pytest.raises(UsageError, match="no table batches"):
        make_backup(str(folder / "nothing"), str(folder / "backups"), NOW, silent)


@pytest.mark.parametrize(
    ("key", "value"), [("path", "../evil"), ("path", "offsets/../../evil"), ("object", "objects/../../evil")]
)
def test_a_manifest_names_no_file_elsewhere(folder: Path, key: str, value: str) -> None:
    (path,) = (folder / "backups" / "backups").iterdir()
    manifest = json.loads(path.read_text())
    first = next(iter(manifest["files"]))
    file = manifest["files"].pop(first)
    manifest["files"][value if key == "path" else first] = {**file, "object": value} if key == "object" else file
    path.write_text(json.dumps(manifest))
    with pytest.raises(TablesError, match="is not a manifest"):
        restore(str(folder / "restored"), str(folder / "backups"), None, silent)


def test_backups_are_listed(folder: Path, capfd: Captured) -> None:
    assert main(["backup", "--to", str(folder / "backups"), "--list"]) == 0
    assert capfd.readouterr().out.startswith("20261123T000000Z-4  batch 4 of 2026-")
    assert main(["backup", "--to", str(folder / "backups")]) == 2
    assert "--tables is required" in capfd.readouterr().err
