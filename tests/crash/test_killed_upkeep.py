"""Kill -9 in migrations, maintenance between batches, rebuilds and backups: tables stay readable, and a repetition works."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from old_tables import old_tables
from table_contents import contents

from pipelines.query.check import check
from pipelines.runtime import failpoints
from pipelines.tables.folder_files import FolderFiles
from pipelines.tables.pointer import POINTER
from pipelines.tables.store import TableStore
from pipelines.upkeep.backup.manifest import manifests

_COMMAND = "import sys; from pipelines.cli import main; sys.exit(main())"
#: Maintenance as a job does it.
_IN_STEPS = """
import sys, threading
from datetime import UTC, datetime
from contextlib import contextmanager
from pipelines.upkeep.maintain import Maintenance
from pipelines.upkeep.steps import MaintenanceInSteps
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter
writer = TablesWriter.claim(TableStore(sys.argv[1]))
@contextmanager
def hold():
    yield writer
MaintenanceInSteps(sys.argv[1], hold, Maintenance(9_999, 0, 16), datetime.now(UTC)).run(lambda: False)
"""


def ended(code: str, *arguments: str, fault: str | None = None) -> int:
    environment = {**os.environ, **({failpoints.VARIABLE: fault} if fault else {})}
    return subprocess.run([sys.executable, "-c", code, *arguments], env=environment, capture_output=True, check=False).returncode


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return old_tables("0.1.0", tmp_path).rename(tmp_path / "tables")


@pytest.mark.slow
@pytest.mark.parametrize(
    "point", ["claimed", "migrated:batches", "before:batches", "after:batches", "maintain:compacted:batches"]
)
def test_a_migration(old: Path, point: str) -> None:
    before = contents(old)
    assert ended(_COMMAND, "maintain", "--tables", str(old), fault=point) == -signal.SIGKILL
    assert contents(old) == before
    assert check(str(old)) == []
    assert ended(_COMMAND, "maintain", "--tables", str(old)) == 0
    assert contents(old) == before


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before:batches", "maintain:checkpoint:offsets", "maintain:vacuumed:offset_history"])
def test_maintenance_between_batches(old: Path, point: str) -> None:
    assert ended(_COMMAND, "maintain", "--tables", str(old)) == 0
    before = contents(old)
    assert ended(_IN_STEPS, str(old), fault=point) == -signal.SIGKILL
    assert contents(old) == before
    assert check(str(old)) == []
    assert ended(_IN_STEPS, str(old)) == 0
    assert contents(old) == before


@pytest.mark.slow
@pytest.mark.parametrize("point", ["rebuilt:offsets", "rebuilt:lag_history", "before:batches", "after:batches", "rebuilt"])
def test_a_rebuild(old: Path, point: str) -> None:
    before = contents(old)
    assert ended(_COMMAND, "rebuild", "--tables", str(old), fault=point) == -signal.SIGKILL
    assert not (old / POINTER).exists()
    assert contents(old) == before
    assert ended(_COMMAND, "rebuild", "--tables", str(old)) == 0
    assert contents(old) == before
    assert check(str(old)) == []


@pytest.mark.slow
@pytest.mark.parametrize("point", ["pointed", "moved:offsets", "blocked:offsets", "old_tables_blocked"])
def test_the_blocking_of_old_tables(old: Path, point: str) -> None:
    before = contents(old)
    assert ended(_COMMAND, "rebuild", "--tables", str(old), fault=point) == -signal.SIGKILL
    assert contents(old) == before
    assert check(str(old)) == []
    assert ended(_COMMAND, "maintain", "--tables", str(old)) == 0
    assert contents(old) == before
    with pytest.raises(DeltaError, match="grouplake-rebuilt-see-_rebuilt-1"):
        DeltaTable(str(old / "offsets"))


@pytest.mark.slow
@pytest.mark.parametrize("point", ["unblocked:offsets", "unblocked", "moved:offsets"])
def test_a_return_to_the_old_tables(old: Path, point: str) -> None:
    before = contents(old)
    assert ended(_COMMAND, "rebuild", "--tables", str(old)) == 0
    assert ended(_COMMAND, "rebuild", "--tables", str(old), "--return-to-old", fault=point) == -signal.SIGKILL
    assert contents(old) == before
    assert check(str(old)) == []
    assert ended(_COMMAND, "rebuild", "--tables", str(old)) == 0
    assert contents(old) == before


@pytest.mark.slow
@pytest.mark.parametrize("point", ["backup:copied:offsets", "backup:copied:batches", "backup:manifests_removed"])
def test_a_backup(old: Path, tmp_path: Path, point: str) -> None:
    command = ["backup", "--tables", str(old), "--to", str(tmp_path / "backups"), "--keep", "1"]
    assert ended(_COMMAND, *command, fault=point) == -signal.SIGKILL
    assert ended(_COMMAND, *command) == 0
    assert len(manifests(FolderFiles(str(tmp_path / "backups")))) == 1
    assert ended(_COMMAND, "backup", "--to", str(tmp_path / "backups"), "--check") == 0
    restore = ["restore", "--from", str(tmp_path / "backups"), "--tables", str(tmp_path / "restored")]
    assert ended(_COMMAND, *restore, fault="restored") == -signal.SIGKILL
    # all files are there, only the check of them was missing
    assert TableStore(str(tmp_path / "restored")).exists()
    assert contents(tmp_path / "restored") == contents(old)
