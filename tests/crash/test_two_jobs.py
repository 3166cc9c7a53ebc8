"""Two concurrent `grouplake run`: exactly one continues, the other reports why it stops, with exit code 1."""

from pathlib import Path

import pytest
from crash_log import CrashLog
from real_runs import real_run
from table_contents import contents

from pipelines.query.check import check

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HALTED = "after:offset_history=STOP"


#: Samples have times of their own, in which two runs differ.
NO_SAMPLES = "[lag]\ninterval_seconds = 0\n"


def command(log: CrashLog, tables: Path, *, more: str = "") -> list[str]:
    conf = tables.parent / "job.toml"
    conf.write_text(NO_SAMPLES + more)
    return ["run", "--source", log.address, "--tables", str(tables), "--conf", str(conf)]


def alone(log: CrashLog, tables: Path) -> dict[str, list[str]]:
    with real_run(command(log, tables), tables.parent / "alone") as run:
        assert run.wait() == 0, run.output
    return contents(tables)


def test_the_lock_refuses_the_second(tmp_path: Path) -> None:
    log, tables = CrashLog(tmp_path / "log", 1), tmp_path / "tables"
    log.grow()
    with real_run(command(log, tables), tmp_path / "first", fault=HALTED) as first:
        assert first.wait_until(first.is_halted)
        with real_run(command(log, tables), tmp_path / "second") as second:
            assert second.wait() == 1
            assert f"are being written by `grouplake run` (pid {first.process.pid} on " in second.output
            assert second.output.count("\n") == 1
        first.resume()
        assert first.wait() == 0, first.output
    assert check(str(tables)) == []
    assert contents(tables) == alone(log, tmp_path / "again")


@pytest.mark.parametrize("bulk", [False, True])
def test_the_claim_fences_the_first(bulk: bool, tmp_path: Path) -> None:
    """Without locks, the later writer takes over."""
    log, tables = CrashLog(tmp_path / "log", 1), tmp_path / "tables"
    log.grow()
    job = command(log, tables, more="[job]\nbulk_rows = 1\n" if bulk else "")
    with real_run(job, tmp_path / "first", fault=HALTED, unlocked=True) as first:
        assert first.wait_until(first.is_halted)
        with real_run(job, tmp_path / "second", unlocked=True) as second:
            assert second.wait() == 0, second.output
        first.resume()
        assert first.wait() == 1
    assert first.output.splitlines()[-1] == (
        f"grouplake: another job took over the tables under {tables} (writer epoch 2, ours is 1)"
    )
    assert check(str(tables)) == []
    assert contents(tables) == alone(log, tmp_path / "again")
    log.grow()
    assert alone(log, tables)["batches"] != contents(tmp_path / "again")["batches"]
    assert check(str(tables)) == []
