"""The lock of a local folder: a second writer learns which process holds it, and it ends with the process."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from log_builder import Log
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.cli import main
from pipelines.runtime.errors import AnotherWriter
from pipelines.tables.location import local_folder
from pipelines.tables.store import TableStore
from pipelines.tables.writer_lock import FILE, writer_lock

HOLDER = """
import sys, time
from pipelines.tables.store import TableStore
from pipelines.tables.writer_lock import writer_lock
with writer_lock(sys.argv[1], "grouplake run") as is_locked:
    print(is_locked, flush=True)
    time.sleep(60)
"""


def tables(root: Path) -> Path:
    log = Log(partition=3)
    log.commit(0, 5)
    applied(log, Era.named("4"), [], str(root))
    return root


def source(folder: Path) -> str:
    segments = folder / "log" / "__consumer_offsets-0"
    segments.mkdir(parents=True)
    (segments / f"{0:020}.log").touch()
    return f"segments:{folder / 'log'}"


@pytest.mark.parametrize("command", ["run", "maintain"])
def test_the_second_writer_gets_an_error(
    command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # a job answers a request for maintenance; this process does not
    monkeypatch.setattr("pipelines.upkeep.beside_job.ACCEPT_SECONDS", 0.1)
    root = tmp_path / "tables"
    TableStore(str(root)).create()
    arguments = ["--source", source(tmp_path)] if command == "run" else []
    with writer_lock(str(root), "grouplake run") as is_locked:
        assert is_locked
        assert main([command, "--tables", str(root), *arguments]) == 1
    *progress, line = capfd.readouterr().err.splitlines()
    assert line.startswith(f"grouplake: the tables under {root} are being written by `grouplake run` (pid {os.getpid()} on ")
    assert len(progress) == (command == "maintain")


def test_readers_need_no_lock(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = tables(tmp_path / "tables")
    with writer_lock(str(root), "grouplake run"):
        assert main(["check", "--tables", str(root)]) == 0
        assert main(["sql", "--tables", str(root), "SELECT count(*) AS n FROM offsets", "--format", "csv"]) == 0
    assert capfd.readouterr().out.endswith("n\n1\n")


def test_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    with holder, holder.stdout as output:
        assert output.readline() == "True\n"
        with pytest.raises(AnotherWriter, match=rf"`grouplake run` \(pid {holder.pid} on "), writer_lock(str(tmp_path), "x"):
            pass
        holder.send_signal(signal.SIGKILL)
    with writer_lock(str(tmp_path), "grouplake maintain") as is_locked:
        assert is_locked
        assert (tmp_path / FILE).read_text().startswith("grouplake maintain\npid ")


def test_a_process_that_outlives_the_holder_does_not_hold_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print(); input()"]
    with writer_lock(str(tmp_path), "grouplake run"):
        other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False)
        assert other.stdout is not None
        assert other.stdout.readline() == b"\n"
    try:
        with writer_lock(str(tmp_path), "grouplake run") as is_locked:
            assert is_locked
    finally:
        other.communicate(b"\n")


def test_without_locks_the_work_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    with writer_lock(str(tmp_path), "grouplake run") as is_locked:
        assert not is_locked


def test_addresses_of_local_folders() -> None:
    assert local_folder("/data/groups") == Path("/data/groups")
    assert local_folder("file:///data/my%20groups") == Path("/data/my groups")
    assert local_folder("s3://bucket/groups") is None
