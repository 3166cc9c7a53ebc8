"""Checkpoints of claims, `_checkpoint/generation-N`: the next run removes those of earlier claims."""

import fcntl
import shutil
from pathlib import Path

import pytest
from jobs import run_job
from segment_builder import LogBuilder

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from pipelines.tables.store import TableStore
from pipelines.tables.stream_checkpoints import checkpoint_location, remove_stale_checkpoints


def checkpoints(tables: Path) -> list[str]:
    return sorted(path.name for path in (tables / "_checkpoint").iterdir())


def make(tables: Path, *names: str) -> None:
    for name in names:
        folder = tables / "_checkpoint" / name / "offsets"
        folder.mkdir(parents=True)
        (folder / "0").touch()
        (folder / ".0.crc").touch()


def test_where_the_checkpoint_is() -> None:
    store = TableStore("/data/groups")
    assert checkpoint_location(store, None) == "file:///data/groups/_checkpoint"
    assert checkpoint_location(store, 7) == "file:///data/groups/_checkpoint/generation-7"


def test_those_of_earlier_claims_are_removed_and_nothing_else(tmp_path: Path) -> None:
    kept = ["commits", "generation-10", "generation-11", "generation-x", "offsets"]
    make(tmp_path, *kept, "generation-1", "generation-9", "generation-08")
    (tmp_path / "_checkpoint" / "generation-2").touch()
    lines: list[str] = []
    for root in (tmp_path.as_uri(), str(tmp_path), str(tmp_path / "none")):
        remove_stale_checkpoints(TableStore(root), 10, lines.append)
        assert checkpoints(tmp_path) == sorted([*kept, "generation-2"])
    assert lines == []


def test_an_error_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "generation-1")

    def rmtree(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    lines: list[str] = []
    remove_stale_checkpoints(TableStore(str(tmp_path)), 2, lines.append)
    assert lines == [f"cannot remove checkpoints of earlier runs under {tmp_path}/_checkpoint: [Errno 13] Permission denied"]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_run_without_a_lock_leaves_no_checkpoint_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: int) -> None:
        raise OSError(38, "Function not implemented")

    tables, log = tmp_path / "tables", LogBuilder(tmp_path / "log")
    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", flock)
        for generation in (1, 2, 3):
            log.append(0, [encode(Record(1, OffsetCommitKey("g", "t", 0), OffsetCommitValue(generation, commit_timestamp=1), 3))])
            run_job(f"segments:{log.directory}", tables)
            assert checkpoints(tables) == [f"generation-{generation}"]
    run_job(f"segments:{log.directory}", tables)
    assert "generation-3" in checkpoints(tables)
