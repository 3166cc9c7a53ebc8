"""Whether the job runs, from the lock of its tables."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from pipelines.tables.data_age import JobState
from pipelines.tables.job_state import job_state
from pipelines.tables.writer_lock import FILE, writer_lock


def test_a_job_that_holds_the_lock_is_running(tmp_path: Path) -> None:
    program = "import sys\nfrom pipelines.tables.writer_lock import writer_lock\n"
    program += "with writer_lock(sys.argv[1], 'grouplake run'):\n    print('locked', flush=True)\n    sys.stdin.read()"
    job = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert job.stdout is not None
    assert job.stdin is not None
    with job.stdout, job.stdin:
        assert job.stdout.readline() == "locked\n"
        assert job_state(str(tmp_path)) is JobState.RUNNING
        job.kill()
        job.wait()
    # the text of the killed process remains in the file
    assert f"pid {job.pid}" in (tmp_path / FILE).read_text()
    assert job_state(str(tmp_path)) is JobState.STOPPED


def test_a_job_that_has_ended_has_stopped(tmp_path: Path) -> None:
    with writer_lock(str(tmp_path), "grouplake run"):
        pass
    assert job_state(str(tmp_path)) is JobState.STOPPED


def test_maintenance_is_not_the_job(tmp_path: Path) -> None:
    with writer_lock(str(tmp_path), "grouplake maintain"):
        assert job_state(str(tmp_path)) is JobState.STOPPED


def test_a_job_of_another_host_is_seen_by_its_lock(tmp_path: Path) -> None:
    with writer_lock(str(tmp_path), "grouplake run"):
        text = (tmp_path / FILE).read_text().replace(socket.gethostname(), "another-host")
        (tmp_path / FILE).write_text(text)
        assert job_state(str(tmp_path)) is JobState.RUNNING
    (tmp_path / FILE).write_text(text)
    # without a lock it may run where locks do not reach
    assert job_state(str(tmp_path)) is JobState.HIDDEN


def test_nothing_is_known_without_a_lock(tmp_path: Path) -> None:
    assert job_state(str(tmp_path)) is JobState.HIDDEN
    assert job_state("s3://bucket/tables") is JobState.HIDDEN


def test_a_process_that_got_the_number_of_a_dead_job_is_not_the_job(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(f"grouplake run\npid {os.getpid()} on {socket.gethostname()} since then\n")
    assert job_state(str(tmp_path)) is JobState.STOPPED
