"""A job that follows a log ends when it is told to, and its tables are whole."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import genuine
import pytest

from pipelines.query.check import check

pytestmark = pytest.mark.spark

LIMIT_SECONDS = 120


def test_sigterm_ends_a_following_job(tmp_path: Path) -> None:
    log, tables = genuine.segments_dir("2.8.2", tmp_path / "log"), tmp_path / "tables"
    command = ["run", "--source", f"segments:{log}", "--tables", str(tables), "--era", "3", "--trigger", "1s"]
    with (tmp_path / "progress").open("w") as progress:
        job = subprocess.Popen([sys.executable, "-m", "pipelines.cli.main", *command], stderr=progress, env=dict(os.environ))
    try:
        until = time.monotonic() + LIMIT_SECONDS
        while "batch 0" not in (tmp_path / "progress").read_text():
            assert job.poll() is None
            assert time.monotonic() < until
            time.sleep(0.2)
        job.send_signal(signal.SIGTERM)
        assert job.wait(LIMIT_SECONDS) == 0
    finally:
        job.kill()
        job.wait()
    lines = (tmp_path / "progress").read_text().splitlines()
    assert lines[-1] == "stopping"
    assert check(str(tables)) == []
