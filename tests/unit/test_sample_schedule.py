"""Times of samples: at an interval between batches while a run follows the log, otherwise once at its end."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coordinator_core.log.errors import LogUnreachable
from pipelines.lag.sampling import LagSampling
from pipelines.lag.schedule import SampleSchedule
from pipelines.tables.store import Batch
from pipelines.tables.writer import TablesWriter

AT = datetime(2026, 3, 1, tzinfo=UTC)
BATCH = Batch(7, AT, AT, 1, "4", 1, 0, 0, {}, {}, {})


class Sampling:
    """Stands for `LagSampling`; an outage raises."""

    def __init__(self) -> None:
        self.samples = 0
        self.is_down = False
        self.is_locked: Callable[[], bool] = bool
        self.on_prepare: Callable[[], object] = bool

    def prepare(self, _root: str, last: Batch) -> Batch:
        if self.is_down:
            raise LogUnreachable("no broker answers at here:1")
        self.on_prepare()
        return last

    def write(self, _writer: Any, prepared: Batch) -> Batch:
        assert self.is_locked()
        self.samples += 1
        return prepared

    def sample(self, writer: Any) -> Batch | None:
        return self.write(writer, self.prepare("", BATCH))


class Run:
    """A schedule with a clock that the test sets, and the lines of progress."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, interval_seconds: int | None) -> None:
        self.seconds = 0.0
        self.lines: list[str] = []
        self.lock = threading.Lock()
        self.sampling = Sampling()
        self.sampling.is_locked = self.lock.locked
        monkeypatch.setattr("pipelines.lag.schedule.time.monotonic", lambda: self.seconds)
        self.schedule = SampleSchedule(
            cast(LagSampling, self.sampling),
            interval_seconds,
            self.lock,
            cast(Callable[[], TablesWriter], lambda: SimpleNamespace(store=SimpleNamespace(root="tables"), last=BATCH)),
            self.lines.append,
        )

    def at(self, seconds: float) -> int:
        """The number of samples after a look at this time."""
        self.seconds = seconds
        self.schedule.sample_if_due()
        return self.sampling.samples


def test_samples_at_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 30)
    assert [run.at(seconds) for seconds in (0, 1, 29, 30, 31, 61)] == [1, 1, 1, 2, 2, 3]
    assert run.lines == ["batch 7: sample of end offsets, 0.0 s"] * 3
    run.schedule.query_ended(is_done=True)
    assert run.sampling.samples == 3


def test_a_batch_in_progress_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 30)
    with run.lock:
        assert run.at(5) == 0
    assert run.at(6) == 1
    assert not run.lock.locked()


def test_batches_are_applied_while_a_sample_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.lag.schedule._WAIT_SECONDS", 0.01)
    run = Run(monkeypatch, 30)
    run.sampling.on_prepare = run.lock.acquire
    assert run.at(5) == 0, "a batch began meanwhile, so the sample waits"
    assert run.at(6) == 0
    run.lock.release()
    run.sampling.on_prepare = lambda: pytest.fail("the sample is prepared already")
    assert run.at(7) == 1
    assert run.at(8) == 1
    assert not run.lock.locked()


@pytest.mark.parametrize(("is_done", "samples"), [(True, 1), (False, 0)])
def test_a_run_that_does_not_follow_samples_once_at_its_end(is_done: bool, samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, None)
    assert run.at(5) == 0
    run.schedule.query_ended(is_done)
    assert run.sampling.samples == samples


def test_an_outage_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 30)
    run.sampling.is_down = True
    run.at(0)
    run.at(30)
    run.sampling.is_down = False
    run.at(60)
    assert run.lines == [
        "end offsets cannot be sampled, so lag is not updated: no broker answers at here:1",
        "end offsets are sampled again",
        "batch 7: sample of end offsets, 0.0 s",
    ]


class ClusterCalls:
    """Stands for `ClusterSampling`."""

    def __init__(self) -> None:
        self.calls = 0

    def sample(self, _writer: Any) -> None:
        self.calls += 1


def test_the_cluster_is_asked_after_each_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    run, cluster = Run(monkeypatch, 30), ClusterCalls()
    monkeypatch.setattr(run.schedule, "_cluster", cluster)
    run.at(0)
    assert cluster.calls == 1
    run.sampling.is_down = True
    run.at(30)
    assert cluster.calls == 1
