"""Times of samples, and the commits that each belongs to: log ends are compared with commits of the same time only."""

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from aged_tables import run_at
from eventually import eventually

from coordinator_core.health import END_OFFSETS_SCHEMA
from coordinator_core.log.errors import LogUnreachable
from pipelines.lag.sampling.log_end import EndOfLog, EndOfPolls, is_same_time
from pipelines.lag.sampling.sampling import LagSampling, PreparedSample
from pipelines.lag.sampling.schedule import SampleSchedule, Sampling
from pipelines.runtime.phases import Phases
from pipelines.runtime.timestamps import at_ms
from pipelines.tables.reached_position import ReachedPosition
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter

START_MS = 1_772_323_200_000
AT = datetime(2026, 3, 1, tzinfo=UTC)
BATCH = Batch(7, AT, AT, 1, "4", 1, 0, 0, {0: 9}, {}, {}, log_read_until=at_ms(START_MS), records_behind=0)


class Brokers:
    """Stands for `LagSampling` and `LogEnd`: what was written, and the log of groups with `unread` records."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self.is_down = self.is_closed = False
        self.unread = 0
        self.asked = 0
        self.on_ask: Callable[[], object] = bool
        self.on_prepare: Callable[[], object] = bool
        self.written: list[tuple[int, str, datetime | None]] = []

    def ask(self, _root: str, _last: Batch | None, _new: object = None) -> pa.Table:
        self.asked += 1
        self.on_ask()
        if self.is_down:
            raise LogUnreachable("no broker answers at here:1")
        return pa.table({"asked": [self.asked]})

    def read_until(self, _next_offsets: Any) -> int | None:
        if self.is_down:
            raise LogUnreachable("no broker answers at here:1")
        return None if self.unread else self._run.now_ms

    def is_same_time(self, batch: Batch, asked_at_ms: int) -> bool:
        return is_same_time(batch, asked_at_ms)

    def close(self) -> None:
        self.is_closed = True

    def prepare(self, _root: str, last: Batch, ends: pa.Table, reached: ReachedPosition | None = None) -> PreparedSample:
        self.on_prepare()
        return self._prepared(last, f"ends {ends['asked'][0]}", reached)

    def prepare_unknown(self, _root: str, last: Batch) -> PreparedSample:
        return self._prepared(last, "unknown", None)

    def _prepared(self, last: Batch, lag: str, reached: ReachedPosition | None) -> PreparedSample:
        return PreparedSample({"lag": pa.table({"batch": [last.batch_id], "lag": [lag]})}, Phases(AT), 0, reached)

    def write(self, _writer: Any, prepared: PreparedSample) -> Batch:
        assert self._run.lock.locked()
        (row,) = prepared.tables["lag"].to_pylist()
        self.written.append((row["batch"], row["lag"], prepared.reached.read_until if prepared.reached else None))
        return BATCH


class Run:
    """A schedule with a clock that the test sets, and the lines of progress."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, interval_seconds: int | None, log_end: EndOfLog | None = None) -> None:
        self.seconds = 0.0
        self.lines: list[str] = []
        self.lock = threading.Lock()
        self.last = BATCH
        self.cluster_calls = 0
        self.brokers = Brokers(self)
        monkeypatch.setattr("pipelines.lag.sampling.schedule.time.monotonic", lambda: self.seconds)
        monkeypatch.setattr("pipelines.lag.sampling.schedule._WAIT_SECONDS", 0.01)
        self.schedule = SampleSchedule(
            Sampling(
                cast(LagSampling, self.brokers),
                cast(Any, SimpleNamespace(sample=self._sample_cluster)),
                log_end or self.brokers,
            ),
            interval_seconds,
            self.lock,
            cast(Callable[[], TablesWriter], lambda: SimpleNamespace(store=SimpleNamespace(root="tables"), last=self.last)),
            self.lines.append,
            lambda: self.now_ms,
        )

    def _sample_cluster(self, _writer: Any) -> None:
        self.cluster_calls += 1

    @property
    def now_ms(self) -> int:
        return START_MS + int(self.seconds * 1000)

    @property
    def written(self) -> list[tuple[int, str, datetime | None]]:
        return self.brokers.written

    def at(self, seconds: float) -> int:
        """The number of samples after a look at this time."""
        self.seconds = seconds
        asked = self.schedule._asked
        if asked is not None:
            eventually("the answer of the brokers", lambda: asked.is_done)
        self.schedule.sample_if_due()
        return len(self.written)

    def batch(self, seconds: float, *, took: float = 1, behind: int = 0, delay: float = 0) -> None:
        """A batch that requests the end of the log at `seconds`, begins after `delay`, and is complete after `took`."""
        with self.lock:
            self.seconds = seconds + delay
            self.schedule.batch_begins(self.last, "tables")
            asked_at = at_ms(START_MS + int(seconds * 1000))
            self.last = replace(self.last, batch_id=self.last.batch_id + 1, log_read_until=asked_at, records_behind=behind)
            self.seconds += took
            self.schedule.batch_applied(self.last)


def test_a_quiet_log_is_sampled_at_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 30)
    assert [run.at(seconds) for seconds in (0, 1, 29, 30, 31, 61)] == [1, 1, 1, 2, 2, 3]
    assert run.lines == ["batch 7: sample of end offsets, 0.0 s"] * 3
    assert run.cluster_calls == 3
    # the log had no further records at the time of each sample, which the sample's batch states
    assert run.written == [(7, f"ends {n}", at_ms(START_MS + ms)) for n, ms in ((1, 0), (2, 30_000), (3, 61_000))]
    run.schedule.query_ended(is_done=True)
    assert len(run.written) == 3


@pytest.mark.parametrize("seconds", [1, 6, 45])
def test_log_ends_belong_to_the_poll_before_them_however_long_it_took(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The coordinators of 100,000 groups answer for longer than log ends of a log may be younger than its end."""
    run = Run(monkeypatch, 30, EndOfPolls())
    for begin in (0, 60, 120):
        run.batch(begin, took=3, delay=seconds)
        run.at(begin + seconds + 3)
    assert run.written == [(8, "ends 1", None), (9, "ends 2", None), (10, "ends 3", None)]


def test_an_incomplete_poll_has_no_log_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 30, EndOfPolls())
    run.batch(0, behind=1, delay=2)
    assert run.at(3) == 1
    assert run.written == [(8, "unknown", None)]


def test_commits_that_are_not_read_yet_are_not_compared_with_new_log_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that comes back after eight minutes: its tables are as old, the log has grown."""
    run = Run(monkeypatch, 30)
    run.brokers.unread = 2_000
    assert [run.at(seconds) for seconds in (480, 481, 510, 540)] == [1, 1, 1, 1]
    assert run.brokers.asked == 0
    run.batch(541, took=20)
    assert run.at(561) == 2
    assert run.written == [(7, "unknown", None), (8, "ends 1", None)], "ends of the time at which the batch began"


def test_log_ends_that_arrive_while_records_are_appended_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 30)
    run.at(0)
    run.brokers.on_ask = lambda: setattr(run.brokers, "unread", 1)
    assert run.at(30) == 1
    run.batch(40)
    assert run.at(41) == 2
    assert run.written[1] == (8, "ends 3", None)


def test_log_ends_of_a_busy_cluster_are_requested_when_a_batch_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 30)
    run.brokers.unread = 1
    for second in range(0, 100, 10):
        run.batch(second)
        run.at(second + 2)
    assert [(batch, lag) for batch, lag, _ in run.written] == [(8, "ends 1"), (12, "ends 2"), (16, "ends 3")]
    assert run.brokers.asked == 3


def test_a_batch_that_does_not_reach_the_end_of_the_log_makes_lag_unknown_once_per_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(monkeypatch, 30)
    run.brokers.unread = 1
    for second in range(0, 50, 5):
        run.batch(second, behind=1_000_000)
        run.at(second + 2)
    assert run.written == [(8, "unknown", None), (14, "unknown", None)]
    run.batch(50)
    run.at(52)
    assert run.written[2][:2] == (18, "ends 11"), "as soon as the end is reached"


def test_a_batch_that_began_late_is_not_of_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine was so busy that the batch began a minute after it had requested the end of the log."""
    run = Run(monkeypatch, 30)
    run.brokers.unread = 1
    run.batch(0, delay=60)
    run.at(62)
    run.batch(70)
    run.at(72)
    assert run.written == [(8, "unknown", None), (9, "ends 2", None)]


def test_log_ends_belong_to_the_batch_beside_which_they_were_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 30)
    run.brokers.unread = 1
    answered = threading.Event()
    run.brokers.on_ask = answered.wait
    run.batch(0)
    run.batch(10)
    run.schedule.sample_if_due()
    assert run.written == []
    answered.set()
    assert run.at(12) == 1
    assert run.written == [(8, "ends 1", None)]


def test_statuses_follow_the_commits_while_lag_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine: batches read to the end, but log ends are always requested too long after it."""
    run = Run(monkeypatch, 30)
    run.brokers.unread = 1
    assert run.at(0) == 1
    for seconds in (10, 20, 30, 50, 70):
        run.batch(seconds, delay=8)
        run.at(seconds + 9)
    assert run.written == [(7, "unknown", None), (10, "unknown", None), (12, "unknown", None)]
    run.batch(80)
    run.at(82)
    run.batch(90, delay=8)
    run.at(120)
    assert [lag for _, lag, _ in run.written[3:]] == ["ends 6"], "known lag is not replaced"


def test_a_run_that_begins_behind_the_end_of_the_log_says_so_before_its_first_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 30)
    run.brokers.unread = 1
    assert [run.at(0), run.at(1), run.at(40)] == [1, 1, 1]
    run.batch(45)
    assert run.at(47) == 2
    run.batch(80)
    assert run.at(82) == 3
    assert run.written == [(7, "unknown", None), (8, "ends 1", None), (9, "ends 2", None)]


def test_a_batch_in_progress_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 30)
    with run.lock:
        assert run.at(5) == 0
    assert run.at(6) == 1
    assert not run.lock.locked()


def test_batches_are_applied_while_a_sample_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 30)
    run.brokers.on_prepare = run.lock.acquire
    assert run.at(5) == 0, "a batch began meanwhile, so the sample waits"
    assert run.at(6) == 0
    run.lock.release()
    run.brokers.on_prepare = lambda: pytest.fail("the sample is prepared already")
    assert run.at(7) == 1
    assert run.at(8) == 1
    assert not run.lock.locked()


@pytest.mark.parametrize(("is_done", "samples"), [(True, 1), (False, 0)])
def test_a_run_that_does_not_follow_samples_once_at_its_end(is_done: bool, samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, None)
    assert run.at(5) == 0
    run.schedule.query_ended(is_done)
    assert len(run.written) == samples
    assert run.brokers.is_closed


def test_a_run_that_does_not_follow_uses_the_log_ends_of_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, None)
    run.brokers.unread = 1
    run.batch(0, took=300)
    run.schedule.query_ended(True, lambda: pytest.fail("no records are missing"))
    assert run.written == [(8, "ends 1", None)]


def test_a_run_that_does_not_follow_reads_what_was_appended_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a first load of hours, the log has new records: they are read before log ends are compared with commits."""
    run = Run(monkeypatch, None)
    run.brokers.unread = 5
    run.batch(0, delay=3_600)

    def catch_up() -> bool:
        run.batch(run.seconds)
        return True

    run.schedule.query_ended(True, catch_up)
    assert run.written == [(9, "ends 2", None)]


def test_lag_is_unknown_after_a_run_that_cannot_catch_up(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, None)
    run.brokers.unread = 5
    tries = itertools.count()
    run.schedule.query_ended(True, lambda: next(tries) >= 0)
    assert next(tries) == 3
    assert run.written == [(7, "unknown", None)]


def test_an_outage_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 30)
    run.brokers.is_down = True
    run.at(0)
    run.at(30)
    run.brokers.is_down = False
    run.at(60)
    assert run.lines == [
        "end offsets cannot be sampled, so lag is not updated: no broker answers at here:1",
        "end offsets are sampled again",
        "batch 7: sample of end offsets, 0.0 s",
    ]
    assert run.cluster_calls == 1


def test_readers_that_expect_batches_get_one_when_there_is_nothing_to_sample(tmp_path: Path) -> None:
    """A cluster in which no group has a position is up to date, and its tables are not old."""
    run_at(tmp_path, [AT])
    store = TableStore(str(tmp_path))
    for interval, batches in ((0, 1), (30, 2)):
        nothing = Sampling(LagSampling(lambda _wanted: END_OFFSETS_SCHEMA.empty_table(), lambda: AT))
        claim = partial(TablesWriter.claim, store, interval)
        SampleSchedule(nothing, 30, threading.Lock(), claim, lambda _line: None, lambda: START_MS).sample_if_due()
        last = store.last_batch()
        assert last is not None
        assert (last.batch_id, last.interval_seconds) == (batches - 1, interval or None)
