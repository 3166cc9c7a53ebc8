"""A running `grouplake run` maintains its tables, at its interval and for `grouplake maintain`; its claim lasts."""

import re
import signal
from pathlib import Path

import pytest
from genuine import segments_dir
from real_runs import RealRun

from pipelines.cli import main
from pipelines.query.check import check
from pipelines.query.engine import Snapshot


@pytest.mark.slow
@pytest.mark.spark
def test_a_job_maintains_and_answers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log, root = segments_dir("4.1.1", tmp_path / "log"), str(tmp_path / "tables")
    conf = tmp_path / "mine.toml"
    conf.write_text("[lag]\ninterval_seconds = 1\n")
    arguments = ["run", "--source", f"segments:{log}", "--tables", root, "--conf", str(conf)]
    job = RealRun([*arguments, "--trigger", "1s", "--maintain-every", "3s"], tmp_path / "job.txt")
    try:
        assert job.wait_until(lambda: job.output.count("maintenance, ") >= 2), job.output
        assert main(["maintain", "--tables", root]) == 0
        requested = capfd.readouterr().err.splitlines()[-1]
        # samples continue
        seen = job.output.count("sample of end offsets")
        assert job.wait_until(lambda: job.output.count("sample of end offsets") > seen), job.output
    finally:
        job.process.send_signal(signal.SIGTERM)
        assert job.wait() == 0, job.output
    assert re.fullmatch(r"batch \d+: maintenance, .* s; \d+ files removed, batches waited for \d+\.\d s at most", requested)
    assert requested in job.output
    assert not re.search(r"failed|took over", job.output)
    assert check(root) == []
    epochs = Snapshot.open(root).query("SELECT DISTINCT generation FROM batches")["generation"].to_pylist()
    assert epochs == [1], "one claim"


@pytest.mark.spark
@pytest.mark.slow
def test_a_scheduled_run_maintains_when_due(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log, root = segments_dir("4.1.1", tmp_path / "log"), str(tmp_path / "tables")
    run = ["run", "--source", f"segments:{log}", "--tables", root]
    assert main([*run, "--maintain-every", "1h"]) == 0
    assert "maintenance, " not in capfd.readouterr().err
    # up to date, so that Spark is not started
    assert main([*run, "--maintain-every", "1s"]) == 0
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("up to date: ")
    assert "maintenance, " in lines[-1]
    assert main([*run, "--maintain-every", "1h"]) == 0
    assert "maintenance, " not in capfd.readouterr().err
    assert check(root) == []
