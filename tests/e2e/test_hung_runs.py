"""Runs and alerts that hang end by themselves, with the reason, and what comes after them works."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest
from lag_tables import write_tables
from patience import PATIENCE_SECONDS

from coordinator_core.service.net.addresses import ListenAddress
from pipelines.alerts.run import alerts_health
from pipelines.tables.store import TableStore

pytestmark = pytest.mark.long


def grouplake(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipelines.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


def test_a_run_that_hangs_ends_and_shows_where(tmp_path: Path) -> None:
    """Nobody writes to the pipe, so the run waits for its first byte without end, as for a disk that does not answer."""
    os.mkfifo(tmp_path / "dump.jsonl")
    tables = str(tmp_path / "tables")
    write_tables(tables, interval_seconds=900)
    before = TableStore(tables).last_batch()
    (tmp_path / "conf.toml").write_text("[job]\nhung_seconds = 2\n")
    arguments = ("run", "--tables", tables, "--schedule", "15m")
    done = grouplake(*arguments, "--source", f"jsonl:{tmp_path / 'dump.jsonl'}", "--conf", str(tmp_path / "conf.toml"))
    assert done.returncode == 1
    assert "no progress for 2 s: this run hangs and ends. The next one continues after the last batch." in done.stderr
    assert "most recent call first" in done.stderr
    assert TableStore(tables).last_batch() == before
    # the lock is free: the next run of the schedule takes its place
    (tmp_path / "whole.jsonl").write_text("")
    after = grouplake(*arguments, "--source", f"jsonl:{tmp_path / 'whole.jsonl'}")
    assert "another process" not in after.stderr
    assert "no progress" not in after.stderr


def test_alerts_answer_probes_and_end_when_they_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, lines = threading.Event(), list[str]()
    monkeypatch.setattr("pipelines.alerts.run.end_process", ended.set)
    monkeypatch.setattr("pipelines.alerts.run._HUNG_SECONDS", 0.5)
    with alerts_health(ListenAddress("127.0.0.1", 0), 30, lines.append):
        (health,) = lines
        answer = httpx.get(health.removeprefix("health: "), timeout=PATIENCE_SECONDS)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        assert ended.wait(PATIENCE_SECONDS)
    assert lines[1:] == ["no evaluation for 0.5 s: the process hangs and ends"]
