"""Readers of paths after `grouplake rebuild`: no reader opens a replaced table, and an interruption at any step is repaired."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from old_tables import OldLog, old_tables
from table_contents import contents

from pipelines.cli import main
from pipelines.dashboard.state.moment_store import PastBatches
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.query.snapshots.loading import SnapshotLoader
from pipelines.runtime.errors import AnotherWriter, ReplacedTables, TablesError, UsageError
from pipelines.runtime.timestamps import at_ms
from pipelines.tables import definitions, replaced_tables
from pipelines.tables.folder_files import FolderFiles
from pipelines.tables.pointer import POINTER, are_old_tables_blocked
from pipelines.tables.replaced_tables import OLD_LOG
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.upkeep.backup.create import make_backup
from pipelines.upkeep.backup.restore import restore
from pipelines.upkeep.rebuild.rebuild import rebuild, return_to_old

NOW = at_ms(1_795_300_000_000)
Captured = pytest.CaptureFixture[str]
Contents = dict[str, list[str]]

#: Refusal of delta-rs, and so of Polars.
REFUSED = r"Feature 'grouplake-rebuilt-see-_rebuilt-{}' is not supported"


def silent(_line: str) -> None:
    """Progress that is not looked at."""


class KilledError(BaseException):
    """Ends a rebuild at a step, as a kill does: no code of ours catches it."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Tables whose logs have what logs have: checkpoints, the hint of the newest one, and a log without its first entries."""
    root = old_tables("0.1.0", tmp_path).rename(tmp_path / "tables")
    for name in ("offsets", "offset_history", "batches"):
        DeltaTable(str(root / name)).create_checkpoint()
    for version in range(DeltaTable(str(root / "offset_history")).version()):
        (root / "offset_history" / "_delta_log" / f"{version:020}.json").unlink()
    return root


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> OldLog:
    return OldLog(tmp_path_factory.mktemp("log"))


def tables_in(folder: Path) -> list[Path]:
    return [folder / name for name in definitions.WRITE_ORDER if (folder / name).exists()]


def expect_blocked(folder: Path, number: int) -> None:
    """No table of a folder can be opened, and the error names the folder of the rebuild with that number."""
    found = tables_in(folder)
    assert len(found) > 15
    for table in found:
        for version in (None, 0, 1, 9):
            with pytest.raises(DeltaError, match=REFUSED.format(number)):
                DeltaTable(str(table), version=version)
        with pytest.raises(DeltaError, match="LogSegment end version 9 not the same as the specified end version 10"):
            DeltaTable(str(table), version=10)


def newest_versions(folder: Path) -> dict[str, int]:
    """Without `batches`, which a rebuild claims."""
    return {table.name: DeltaTable(str(table)).version() for table in tables_in(folder) if table.name != "batches"}


def expect_newest_or_error(folder: Path, newest: dict[str, int]) -> None:
    """A table that is not blocked yet has its newest rows: not an earlier state."""
    for name, version in newest.items():
        try:
            found = DeltaTable(str(folder / name)).version()
        except DeltaError:
            continue
        assert found == version, name


def test_delta_rs_and_polars_refuse_the_old_tables(old: Path) -> None:
    rebuild(str(old), None, silent)
    expect_blocked(old, 1)
    last = TableStore(str(old)).last_batch()
    assert last is not None
    for version in (None, last.versions["offset_history"]):
        with pytest.raises(DeltaError, match=REFUSED.format(1)):
            pl.scan_delta(str(old / "offset_history"), version=version).collect()
        present = pl.scan_delta(TableStore(str(old)).path("offset_history"), version=version).collect()
        assert len(present) == 41
    (old / POINTER).rename(old / "elsewhere")
    reason = f"table batches under {old} was replaced .*, by the one in {old}/_rebuilt-1: restore {old}/{POINTER}, "
    with pytest.raises(ReplacedTables, match=reason):
        Snapshot.open(str(old))


def test_open_handles_of_delta_rs_notice(old: Path) -> None:
    handles = [DeltaTable(str(table)) for table in tables_in(old)]
    rebuild(str(old), None, silent)
    for handle in handles:
        with pytest.raises(DeltaError):
            handle.update_incremental()


@pytest.mark.parametrize(
    ("point", "finish"),
    [
        *(
            (point, "claim")
            for point in ("pointed", "moved:topic_ids", "blocked:topic_ids", "blocked:batches", "old_tables_blocked")
        ),
        *(("moved:offset_history", finish) for finish in ("claim", "rebuild", "maintain")),
    ],
)
def test_an_interruption_at_each_step(
    old: Path, point: str, finish: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, newest = contents(old), newest_versions(old)

    def kill(reached: str) -> None:
        if reached == point:
            raise KilledError

    with monkeypatch.context() as patch:
        for module in ("pipelines.tables.replaced_tables", "pipelines.upkeep.rebuild.rebuild"):
            patch.setattr(f"{module}.failpoint", kill)
        with pytest.raises(KilledError):
            rebuild(str(old), None, silent)
    assert contents(old) == before
    assert check(str(old)) == []
    expect_newest_or_error(old, newest)
    if finish == "claim":
        TablesWriter.claim(TableStore(str(old)))
    elif finish == "rebuild":
        assert main(["rebuild", "--tables", str(old)]) == 0
    else:
        # the rows are of 2026, and the clock is real
        keep = tmp_path / "keep.toml"
        keep.write_text('[maintain]\nhistory_days = 36500\n[lag]\nkeep = "36500d:all"\n')
        assert main(["maintain", "--tables", str(old), "--conf", str(keep)]) == 0
    assert contents(old) == before
    expect_blocked(old, 2 if finish == "rebuild" else 1)
    assert are_old_tables_blocked(FolderFiles(str(old)))


@pytest.mark.parametrize("moves", [0, 1, 3, 20, 60])
def test_an_interruption_between_two_files(old: Path, moves: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before, newest, move = contents(old), newest_versions(old), FolderFiles.move
    left = moves

    def moved(files: FolderFiles, name: str, target: str) -> None:
        nonlocal left
        if left == 0:
            raise KilledError
        left -= 1
        move(files, name, target)

    @contextmanager
    def interrupted() -> Iterator[None]:
        nonlocal left
        with monkeypatch.context() as patch:
            patch.setattr(FolderFiles, "move", moved)
            with pytest.raises(KilledError):
                yield
        left = moves

    with interrupted():
        rebuild(str(old), None, silent)
    assert contents(old) == before
    expect_newest_or_error(old, newest)
    TablesWriter.claim(TableStore(str(old)))
    expect_blocked(old, 1)
    # the way back, interrupted at the same number of files
    with interrupted():
        return_to_old(str(old), silent)
    assert contents(old) == before
    expect_newest_or_error(old, newest)
    if moves % 2:
        TablesWriter.claim(TableStore(str(old)))
        expect_blocked(old, 1)
    return_to_old(str(old), silent)
    assert contents(old) == before
    assert newest_versions(old) == newest


def test_a_second_rebuild(old: Path) -> None:
    before = contents(old)
    for _ in range(2):
        rebuild(str(old), None, silent)
    assert contents(old) == before
    expect_blocked(old, 2)
    expect_blocked(old / "_rebuilt-1", 2)
    with pytest.raises(ReplacedTables, match=f"was replaced .*, by the one in {old}/_rebuilt-2: use --tables {old}$"):
        Snapshot.open(str(old / "_rebuilt-1"))


def test_a_rebuild_by_an_earlier_version(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.upkeep.rebuild.rebuild.finish_blocking", silent)
        rebuild(str(old), None, silent)
    assert DeltaTable(str(old / "offsets")).version() > 0
    assert main(["maintain", "--tables", str(old)]) == 0
    expect_blocked(old, 1)


def test_a_folder_whose_files_cannot_be_moved(old: Path, log: OldLog, monkeypatch: pytest.MonkeyPatch, capfd: Captured) -> None:
    def refuse(_files: FolderFiles, _name: str, _target: str) -> None:
        raise TablesError("cannot move a file: no permission")

    before = contents(old)
    with monkeypatch.context() as patch:
        patch.setattr(FolderFiles, "move", refuse)
        for _ in range(2):
            # the rebuild, and the job after it
            TablesWriter.claim(TableStore(str(old))) if (old / POINTER).exists() else rebuild(str(old), None, silent)
            line = "readers by path can still open the tables that a rebuild has replaced: cannot move a file: no permission"
            assert line in capfd.readouterr().err
    assert contents(old) == before
    log.apply(old)
    expect_blocked(old, 1)


def test_the_old_tables_are_used_again(old: Path, log: OldLog, capfd: Captured) -> None:
    before, newest = contents(old), newest_versions(old)
    assert main(["rebuild", "--tables", str(old), "--return-to-old"]) == 2
    assert "were not rebuilt: nothing to return to" in capfd.readouterr().err
    for _ in range(2):
        rebuild(str(old), None, silent)
    log.apply(old)
    assert contents(old) != before
    assert main(["rebuild", "--tables", str(old), "--return-to-old"]) == 0
    line = capfd.readouterr().err.splitlines()[-1]
    assert line == f"the tables in {old}/_rebuilt-1 are in use again; those in {old}/_rebuilt-2 are blocked"
    assert contents(old) == before
    expect_blocked(old, 1)
    expect_blocked(old / "_rebuilt-2", 1)
    return_to_old(str(old), silent)
    assert contents(old) == before
    assert newest_versions(old) == newest
    assert not list(old.glob(f"*/{OLD_LOG}"))
    with pytest.raises(DeltaError, match="Feature 'grouplake-rebuilt-see-parent-folder' is not supported"):
        DeltaTable(str(old / "_rebuilt-1" / "offsets"))
    with pytest.raises(ReplacedTables, match=f"was replaced .*, by the one in {old}: use --tables {old}$"):
        Snapshot.open(str(old / "_rebuilt-1"))
    log.apply(old)
    assert check(str(old)) == []
    rebuild(str(old), None, silent)
    expect_blocked(old, 1)


def test_no_return_to_deleted_tables(old: Path, capfd: Captured) -> None:
    rebuild(str(old), None, silent)
    assert main(["rebuild", "--tables", str(old), "--delete-old"]) == 0
    assert not [path for path in old.rglob(OLD_LOG)]
    assert not tables_in(old)
    with pytest.raises(UsageError, match="were deleted: restore a backup"):
        return_to_old(str(old), silent)
    assert main(["rebuild", "--tables", str(old), "--return-to-old", "--delete-old"]) == 2
    assert "--return-to-old only returns: use it alone" in capfd.readouterr().err


def test_a_fenced_writer_does_not_write_into_either_folder(old: Path, log: OldLog) -> None:
    job = TablesWriter.claim(TableStore(str(old)))
    job.begin()
    rebuild(str(old), None, silent)
    before = newest_versions(old / "_rebuilt-1")
    with pytest.raises(AnotherWriter, match="another job took over the tables"):
        job.commit("offsets", lambda _table, _stamp: pytest.fail("a table that was replaced is changed"))
    assert newest_versions(old / "_rebuilt-1") == before
    log.apply(old)
    assert check(str(old)) == []


def test_a_page_follows_the_pointer(old: Path, log: OldLog) -> None:
    loader = SnapshotLoader("", str(old))
    first = loader.last_batch()
    assert first is not None
    groups = len(loader.load(first).groups)
    rebuild(str(old), None, silent)
    second = loader.last_batch()
    assert second is not None
    assert second.batch_id == first.batch_id + 1
    assert len(loader.load(second).groups) == groups
    # a snapshot that was opened before keeps its rows, as during a batch
    log.apply(old)
    third = loader.last_batch()
    assert third is not None
    assert third.batch_id > second.batch_id


def test_an_earlier_batch_is_not_looked_for_in_the_new_tables(old: Path) -> None:
    """Versions of the old tables would be other states of the new ones."""
    snapshot, past = Snapshot.open(str(old)), PastBatches(str(old))
    newest = snapshot.batch
    assert past.batch(3, newest).versions
    rows = snapshot.query("SELECT count(*) AS n FROM offset_history").to_pylist()
    rebuild(str(old), None, silent)
    # what was open keeps its rows
    assert snapshot.query("SELECT count(*) AS n FROM offset_history").to_pylist() == rows == [{"n": 41}]
    with pytest.raises(ReplacedTables, match=f"the tables under {old} were rebuilt since batch 4 was read: open them again"):
        snapshot.reopened().query("SELECT * FROM offset_history")
    with pytest.raises(ReplacedTables, match="were rebuilt since batch 4 was read"):
        snapshot.reopened().query("SELECT * FROM batches")
    with pytest.raises(
        ReplacedTables, match=f"table groups under {old} was replaced .*, by the one in {old}/_rebuilt-1: use --tables {old}$"
    ):
        snapshot.query("SELECT * FROM groups")
    assert not past.batch(3, newest).versions
    assert snapshot.newest().batch.batch_id == 5
    assert snapshot.newest().query("SELECT count(*) AS n FROM offset_history").to_pylist() == rows


def test_a_backup_during_a_rebuild_is_of_the_new_tables(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[str] = []

    def rebuilt_meanwhile(point: str) -> None:
        reached.append(point)
        if len(reached) == 1:
            rebuild(str(old), None, silent)

    monkeypatch.setattr("pipelines.upkeep.backup.create.failpoint", rebuilt_meanwhile)
    manifest = make_backup(str(old), str(tmp_path / "backups"), NOW, silent)
    assert manifest.batch_id == 5
    assert restore(str(tmp_path / "restored"), str(tmp_path / "backups"), None, silent)[1] == []
    assert contents(tmp_path / "restored") == contents(old)


def test_blocking_is_repeatable(old: Path) -> None:
    rebuild(str(old), None, silent)
    files = FolderFiles(str(old))
    before = {path for path in files.sizes() if OLD_LOG in path}
    replaced_tables.block_tables(files, "", "_rebuilt-1")
    assert {path for path in files.sizes() if OLD_LOG in path} == before
    expect_blocked(old, 1)
