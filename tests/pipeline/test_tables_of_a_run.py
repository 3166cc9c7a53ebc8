"""One build of tables for all processes of a test run."""

import threading
import time
from pathlib import Path

import pytest
from eventually import NotReached
from tables_of_run import built_once


def test_processes_of_a_run_share_one_build(tmp_path: Path) -> None:
    shared, builds, found = tmp_path / "run", [], []

    def write(folder: str) -> None:
        builds.append(folder)
        Path(folder).mkdir()
        time.sleep(0.3)

    users = [threading.Thread(target=lambda: found.append(built_once(shared, write))) for _ in range(3)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert builds == [str(shared / "tables")]
    assert found == builds * 3


def test_a_failed_build_is_written_again(tmp_path: Path) -> None:
    def fail(folder: str) -> None:
        Path(folder).mkdir()
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        built_once(tmp_path / "run", fail)
    assert Path(built_once(tmp_path / "run", lambda folder: Path(folder).mkdir())).is_dir()


def test_a_build_without_progress_ends_the_wait(tmp_path: Path) -> None:
    started, end = threading.Event(), threading.Event()

    def hang(folder: str) -> None:
        Path(folder).mkdir()
        started.set()
        end.wait()

    builder = threading.Thread(target=built_once, args=(tmp_path / "run", hang))
    builder.start()
    started.wait()
    try:
        with pytest.raises(NotReached, match="are built by another process"):
            built_once(tmp_path / "run", hang, patience_seconds=0.5)  # runs out: the other one hangs
    finally:
        end.set()
        builder.join()
