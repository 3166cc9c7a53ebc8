"""A job that follows a log ends on a signal with consistent tables. While it runs, no other user can see its secrets."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import genuine
import pytest
from eventually import eventually
from first_use import without_recording
from patience import LIMIT_SECONDS
from processes import arguments_and_environments

from pipelines.query.check import check

pytestmark = [pytest.mark.long, pytest.mark.spark]

SECRET = "correct-horse-battery"


@dataclass(frozen=True)
class Followed:
    """Observations of a job: its exit code, its progress, and the arguments and environment of all its processes."""

    code: int
    progress: list[str]
    seen: bytes
    processes: int
    folder: Path

    @property
    def tables(self) -> Path:
        return self.folder / "tables"


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Followed:
    folder = tmp_path_factory.mktemp("followed")
    (folder / "events").mkdir()
    conf = folder / "mine.toml"
    conf.write_text(
        f"""
        [kafka]
        sasl_mechanism = "PLAIN"
        sasl_password = "{SECRET}"
        [spark.conf]
        "spark.hadoop.fs.s3a.secret.key" = "{SECRET}"
        "spark.hadoop.fs.azure.account.key.x.dfs.core.windows.net" = "{SECRET} = \\\\ : ü"
        "fs.azure.account.key.y.dfs.core.windows.net" = "{SECRET}"
        "spark.eventLog.enabled" = true
        "spark.eventLog.compress" = false
        "spark.eventLog.dir" = "{(folder / "events").as_uri()}"
        """
    )
    log = genuine.segments_dir("2.8.2", folder / "log")
    command = ["run", "--source", f"segments:{log}", "--tables", str(folder / "tables"), "--era", "3", "--trigger", "1s"]
    seen: dict[int, bytes] = {}
    with (folder / "progress").open("w") as progress:
        job = subprocess.Popen(
            [sys.executable, "-m", "pipelines.cli.main", *command, "--conf", str(conf)],
            stderr=progress,
            env=dict(os.environ, GROUPLAKE_TRACEBACK="1"),
        )
    try:

        def look() -> str:
            for pid, shown in arguments_and_environments(job.pid).items():
                seen[pid] = seen.get(pid, b"") + shown
            return (folder / "progress").read_text()

        eventually(
            "the first batch is written",
            look,
            lambda progress: "batch 0" in progress,
            unless=lambda: None if job.poll() is None else f"the job ended with {job.returncode}",
            patience_seconds=LIMIT_SECONDS,
            pause_seconds=0.2,
        )
        job.send_signal(signal.SIGTERM)
        code = job.wait(LIMIT_SECONDS)
    finally:
        job.kill()
        job.wait()
    conf.unlink()
    return Followed(code, (folder / "progress").read_text().splitlines(), b"\n".join(seen.values()), len(seen), folder)


def test_sigterm_ends_a_following_job(followed: Followed) -> None:
    assert followed.code == 0
    assert without_recording(followed.progress)[-1] == "stopping"
    assert check(str(followed.tables)) == []


def test_with_tracebacks_on_the_output_of_the_jvm_is_shown(followed: Followed) -> None:
    assert "WARNING: Using incubator modules: jdk.incubator.vector" in followed.progress


def test_no_process_shows_a_secret(followed: Followed) -> None:
    assert followed.processes > 2
    assert b"org.apache.spark.deploy.SparkSubmit" in followed.seen
    assert SECRET.encode() not in followed.seen


def test_no_file_holds_a_secret(followed: Followed) -> None:
    files = [path for path in followed.folder.rglob("*") if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    events = b"".join(path.read_bytes() for path in files if path.is_relative_to(followed.folder / "events"))
    # the settings have reached Spark, which logs them without their values
    assert events.count(b"account.key.x.dfs.core.windows.net") > 0
    assert b"*********(redacted)" in events
