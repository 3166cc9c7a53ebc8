"""The page in the process of a job: `grouplake run --dashboard`."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from event_streams import EventStream
from eventually import eventually
from following import Job
from lag_tables import lag_row, write_tables
from log_builder import Log
from patience import LIMIT_SECONDS, PATIENCE_SECONDS
from segment_builder import LogBuilder

from pipelines.cli import main
from pipelines.cli.dashboard_option import dashboard_of_job
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.progress import RecentProgress, no_progress

CONFIGURATION = load_configuration(None)


def address_of(line: str) -> str:
    return line.removeprefix("dashboard: ").removesuffix("/")


def test_the_page_beside_other_work(tmp_path: Path) -> None:
    """One load of the tables serves the page and `/metrics` of the job."""
    tables, lines = str(tmp_path / "a=b"), list[str]()
    job = RecentProgress(no_progress)
    with dashboard_of_job("grouplake run", "127.0.0.1:0", tables, CONFIGURATION, lines.append, job) as site:
        assert site is not None
        assert list(site.roots) == ["a=b"]
        (url,) = map(address_of, lines)
        # there are no tables before the first batch
        assert httpx.get(f"{url}/ready", timeout=PATIENCE_SECONDS).status_code == 503
        job("reading <orders>")
        waiting = httpx.get(f"{url}/", timeout=PATIENCE_SECONDS, follow_redirects=True)
        assert (waiting.status_code, waiting.headers["retry-after"]) == (503, "2")
        assert "The job has not written a batch yet" in waiting.text
        assert "reading &lt;orders&gt;" in waiting.text
        write_tables(tables, lag=[lag_row("billing", "orders", 0, 1, 3)])
        eventually(
            "the batch is loaded",
            lambda: httpx.get(f"{url}/ready", timeout=PATIENCE_SECONDS).status_code,
            lambda code: code == 200,
        )
        assert "grouplake_batch_id" in httpx.get(f"{url}/metrics", timeout=PATIENCE_SECONDS).text
        stream = EventStream(url, "a%3Db").wait_until_open()
    stream.wait_until_ended()
    stream.close()
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{url}/health")
    assert len(lines) == 1


def test_nothing_without_the_flag() -> None:
    with dashboard_of_job("grouplake run", None, "tables", CONFIGURATION, print, RecentProgress(print)) as site:
        assert site is None


def test_an_error_of_the_page_does_not_end_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise OSError("too many\nopen files")

    monkeypatch.setattr(uvicorn.Server, "serve", fail)
    lines = list[str]()
    with dashboard_of_job(
        "grouplake run", "127.0.0.1:0", str(tmp_path), CONFIGURATION, lines.append, RecentProgress(no_progress)
    ):
        pass
    assert "dashboard: ended with OSError: too many open files" in lines


@pytest.mark.parametrize(
    ("listen", "code", "message"),
    [
        ("8080", 2, "--dashboard: invalid address '8080': use HOST:PORT"),
        ("0.0.0.0:8080", 2, "0.0.0.0:8080 is not a loopback address"),
    ],
)
def test_invalid_addresses(listen: str, code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given: list[Any] = ["run", "--source", "segments:/nowhere", "--tables", str(tmp_path), "--dashboard", listen]
    assert main(given) == code
    assert capsys.readouterr().err.startswith(f"grouplake: {message}")


@pytest.mark.parametrize("command", [["run", "--source", "segments:/nowhere", "--tables", "t"], ["demo"]])
def test_without_the_extra(command: list[str]) -> None:
    program = (
        "import sys\n"
        "sys.modules['uvicorn'] = None\n"
        "from pipelines.cli import main\n"
        f"sys.exit(main([*{command!r}, '--dashboard', '127.0.0.1:0']))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert found.returncode == 2
    needed = f"grouplake {command[0]} --dashboard needs the package uvicorn: pip install 'grouplake[dashboard]'"
    assert found.stderr == f"grouplake: {needed}\n"


@pytest.mark.slow
@pytest.mark.spark
def test_a_job_that_follows_a_log(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    log, stories = LogBuilder(folder), Log()
    append(log, stories, 1)
    with Job(f"segments:{folder}", tmp_path / "east", "--dashboard", "127.0.0.1:0", "--metrics", "127.0.0.1:0") as job:
        job.wait_until_logged("dashboard: http://")
        url = address_of(job.lines_with("dashboard: http://")[0])
        eventually(
            "a batch is loaded",
            lambda: httpx.get(f"{url}/ready", timeout=PATIENCE_SECONDS).status_code,
            lambda code: code == 200,
            unless=job.failure,
            patience_seconds=LIMIT_SECONDS,
        )
        with EventStream(url).wait_until_open() as stream:
            append(log, stories, 2)
            # a batch of the first records may come before
            eventually(
                "an event names the group",
                lambda: list(stream.events),
                lambda events: any("billing" in data["groups"] for _, data in events),
                unless=job.failure,
            )
            job.signal(signal.SIGTERM)
            stream.wait_until_ended()
        assert job.ended() == 0
        assert job.tracebacks == []


def append(log: LogBuilder, stories: Log, offset: int) -> None:
    record = stories.commit(0, offset, group="billing", topic="orders")
    assert record.key is not None
    log.append(0, [(record.key, record.value)])
