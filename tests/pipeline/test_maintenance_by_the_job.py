"""Maintenance by a job between its batches: at an interval, and on request of `grouplake maintain`."""

import fcntl
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from created_tables import created_tables
from deltalake.exceptions import DeltaError
from eventually import eventually
from log_builder import NOW_MS, Log, member
from table_contents import contents
from table_logs import applied, change_table

from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.cli import main
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import AnotherWriter
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writer_lock import writer_lock
from pipelines.upkeep import beside_job
from pipelines.upkeep.beside_job import maintain_beside_job
from pipelines.upkeep.maintain import Maintenance
from pipelines.upkeep.requests import REQUEST, RequestFiles
from pipelines.upkeep.schedule import MaintenanceSchedule

pytestmark = pytest.mark.long

ERA = Era.named("4")
LIMITS = Maintenance(9_999, 168, 16)
CUTS = range(4, 40, 4)


def whole_log() -> Log:
    log = Log(partition=3)
    for number in range(18):
        log.commit(number % 3, number, group=f"g{number % 5}")
        log.group([member()] if number % 2 else [], group="b", generation=number)
    return log


LOG = whole_log()
RANGES = [change_table(LOG, ERA, start, end) for start, end in itertools.pairwise((0, *CUTS))]


class Job:
    """The parts of a job that write tables, without Spark; its clock is a number that the test sets."""

    def __init__(self, root: Path, interval_seconds: int = 0) -> None:
        self.root, self.now_ms, self.lines = root, NOW_MS, list[str]()
        self.applier = BatchApplier(TableStore(str(root)), ERA, ERA.default_retention_ms, dict, bulk_rows=1_000_000)
        self.schedule = MaintenanceSchedule(
            str(root), LIMITS, interval_seconds, self.applier.lock, self._claim, self.lines.append, lambda: self.now_ms
        )

    def _claim(self) -> TablesWriter:
        assert self.applier.lock.locked()
        return self.applier.claim()

    def apply(self, rows: int) -> None:
        with self.applier.lock:
            self.applier.apply_rows(RANGES[rows])

    @contextmanager
    def running(self) -> Iterator[None]:
        """Look for work as a job does every second, under the lock of a job."""
        ended = threading.Event()

        def look() -> None:
            with writer_lock(str(self.root), "grouplake run"):
                is_held.set()
                while not ended.wait(0.02):
                    self.schedule.maintain_if_due()
                self.schedule.stop()

        is_held = threading.Event()
        thread = threading.Thread(target=look)
        thread.start()
        is_held.wait()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    applied(LOG, ERA, CUTS, str(tmp_path / "tables"), again=False)
    return tmp_path / "tables"


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.upkeep.requests.LOOK_SECONDS", {True: 0.02, False: 0.02})
    monkeypatch.setattr("pipelines.upkeep.steps._PAUSE_SECONDS", 0.001)


def files(root: Path, table: str) -> int:
    return len(TableStore(str(root)).table(table).file_uris())


def maintained(job: Job, count: int) -> None:
    eventually(f"{count} maintenances", lambda: sum("maintenance, " in line for line in job.lines), lambda n: n == count)


def test_at_the_interval_since_the_last_one(root: Path) -> None:
    before = contents(root)
    assert files(root, "offset_history") > 3
    first = int(TableStore(str(root)).batch_as_of(0).finished_at.timestamp() * 1000)
    job = Job(root, interval_seconds=3_600)
    with job.running():
        job.now_ms = first + 3_599_000
        time.sleep(0.2)
        assert job.lines == []
        job.now_ms = first + 3_601_000
        maintained(job, 1)
    assert files(root, "offset_history") == 1
    assert contents(root) == before
    assert check(str(root)) == []
    # a restart counts from the last maintenance, whose time is that of this machine
    again = Job(root, interval_seconds=3_600)
    with again.running():
        again.now_ms = int(time.time() * 1000) + 3_590_000
        time.sleep(0.2)
        assert again.lines == []
        again.now_ms += 20_000
        maintained(again, 1)


def test_a_full_disk_is_one_line_and_the_job_goes_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = "Kernel error: Unable to copy data to file: No space left on device (os error 28)"
    job = Job(root, interval_seconds=3_600)
    job.now_ms = int(TableStore(str(root)).batch_as_of(0).finished_at.timestamp() * 1000) + 3_601_000
    with monkeypatch.context() as patched:
        patched.setattr("deltalake.DeltaTable.create_checkpoint", Mock(side_effect=DeltaError(full)))
        job.schedule.maintain_if_due()
        eventually("the maintenance ends", lambda: not job.schedule.is_running)
    assert job.lines == [f"maintenance failed: {full}; the next attempt is in 1:00:00"]
    assert check(str(root)) == []


def test_batches_continue_meanwhile(tmp_path: Path, root: Path) -> None:
    other = tmp_path / "other"
    created_tables(other)
    job = Job(other, interval_seconds=1)
    job.apply(0)
    with job.running():
        for number in range(1, len(RANGES)):
            job.now_ms = int(time.time() * 1000) + 10_000 * number
            eventually("maintenance has begun", lambda: job.schedule.is_running, bool)
            job.apply(number)
        job.now_ms += 10_000_000
        maintained(job, sum("maintenance, " in line for line in job.lines) + 1)
    assert not [line for line in job.lines if "failed" in line]
    assert contents(other) == contents(root)
    assert check(str(other)) == []


def test_the_command_requests_it_from_the_job(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = Job(root)
    with job.running():
        assert main(["maintain", "--tables", str(root)]) == 0
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("`grouplake run` (pid ")
    assert lines[0].endswith(" is writing the tables: waiting for its maintenance")
    assert [line for line in lines if line.startswith("offset_history: ")]
    assert lines[-1] == job.lines[-1]
    assert "files removed, batches waited for " in lines[-1]
    assert files(root, "offset_history") == 1
    assert not (root / REQUEST).exists()
    # the claim of the job still holds
    assert job.applier.writer is not None
    job.applier.writer.expect_claim()


def test_the_limits_are_those_of_the_command(root: Path) -> None:
    limits = Maintenance(history_days=1, vacuum_hours=168, target_file_mb=16)
    at = datetime.fromtimestamp(NOW_MS / 1000, UTC) + timedelta(days=2)
    job = Job(root)
    job.now_ms = int(at.timestamp() * 1000)
    with job.running():
        maintain_beside_job(str(root), limits, lambda: at, lambda _line: None)
    assert Snapshot.open(str(root)).query("SELECT * FROM offset_history").num_rows == 0


def test_a_job_that_does_not_answer(root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(beside_job, "ACCEPT_SECONDS", 0.2)
    with writer_lock(str(root), "grouplake run"):
        assert main(["maintain", "--tables", str(root)]) == 1
    line = capfd.readouterr().err.splitlines()[-1]
    assert "one writer at a time, and it accepted no request for maintenance within 0 s" in line
    assert "stop it and run `grouplake maintain` again" in line
    assert not (root / REQUEST).exists()


def test_another_command_is_not_asked(root: Path) -> None:
    with (
        writer_lock(str(root), "grouplake restore"),
        pytest.raises(AnotherWriter, match=r"are being written by `grouplake restore` \(pid .*: one writer at a time$"),
    ):
        maintain_beside_job(str(root), LIMITS, lambda: datetime.now(UTC), lambda _line: None)


def test_a_job_that_ends_instead(root: Path) -> None:
    is_requested = RequestFiles(str(root))
    ended = threading.Event()

    def job() -> None:
        with writer_lock(str(root), "grouplake run"):
            held.set()
            eventually("a request", is_requested.request, bool)
        ended.set()

    held = threading.Event()
    thread = threading.Thread(target=job)
    thread.start()
    held.wait()
    lines: list[str] = []
    maintain_beside_job(str(root), LIMITS, lambda: datetime.now(UTC), lines.append)
    thread.join()
    assert ended.is_set()
    assert any(line.startswith("batch ") and "maintenance, " in line for line in lines)
    assert files(root, "offset_history") == 1


def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)


def test_without_locks_a_job_that_answers_is_not_fenced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_locks(monkeypatch)
    job = Job(root)
    job.apply(0)
    with job.applier.lock:
        writer = job.applier.claim()
    with job.running():
        maintain_beside_job(str(root), LIMITS, lambda: datetime.now(UTC), lambda _line: None)
    writer.expect_claim()
    assert files(root, "offset_history") == 1


def test_without_locks_and_without_a_job(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_locks(monkeypatch)
    monkeypatch.setattr(beside_job, "ACCEPT_WITHOUT_LOCK_SECONDS", 0.1)
    maintain_beside_job(str(root), LIMITS, lambda: datetime.now(UTC), lambda _line: None)
    assert files(root, "offset_history") == 1


def test_a_job_that_another_one_took_over(root: Path) -> None:
    job = Job(root, interval_seconds=1)
    with job.applier.lock:
        job.applier.claim()
    TablesWriter.claim(TableStore(str(root)))
    job.now_ms = int(time.time() * 1000) + 10_000
    with pytest.raises(AnotherWriter, match="another job took over the tables"):
        job.schedule.query_ended()


def test_a_stop_ends_it_after_the_present_table(root: Path) -> None:
    job = Job(root, interval_seconds=1)
    job.now_ms = int(time.time() * 1000) + 10_000
    with job.applier.lock:
        job.schedule.maintain_if_due()
        stopping = threading.Thread(target=job.schedule.stop)
        stopping.start()
    stopping.join()
    assert job.lines == []
    assert files(root, "group_history") > 1
    assert check(str(root)) == []


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"id": 1}', b'{"id": "x", "keep": [[1]]}', b"\xff" * 10])
def test_a_file_that_is_not_a_request(content: bytes, tmp_path: Path) -> None:
    (tmp_path / REQUEST).write_bytes(content)
    assert RequestFiles(str(tmp_path)).request() is None
