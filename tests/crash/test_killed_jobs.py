"""The real `grouplake run`, killed while its log grows: driver, JVM and workers together, or the driver alone.

CRASH_JOBS is the number of random kills of the long test; each costs a start of Spark.
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from command_polls import answer_of, checked, queried
from crash_log import CrashLog
from killed_runs import Workload
from real_runs import RealRun
from table_contents import contents, contents_of, digest

from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import UsageError
from pipelines.tables.store import TableStore

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOBS = int(os.environ.get("CRASH_JOBS", "20"))
SEED = int(os.environ.get("CRASH_SEED", "20261121"))

#: One poll in this many is also made by the commands, which take a second each to start.
COMMANDS_EVERY = 10

#: Lower bound for the span of a run, from its claim to its end, in seconds: a run with only the sweep left is shorter.
SHORTEST = 3.0

#: Kills are spread over this multiple of a run's duration, so that some runs complete and the log grows on.
SPREAD = 1.25

#: Failpoints of the job that are reached once in a run with a batch and a sweep; the first is in a Python worker, or
#: in the driver without Spark.
POINTS = ("source:read=STOP", "claimed", "after:offsets", "before:batches", "after:batches", "sweep:after:offsets")

#: How a batch is read and written → the configuration that makes it so. The first batch of new tables is read by Spark.
WAYS = {
    "without Spark": "",
    "in the driver": "[job]\ndriver_records = 0\n",
    "by Spark": "[job]\ndriver_records = 0\nbulk_rows = 1\n",
}


class Following:
    """The job over a growing log, and an undisturbed reference without Spark."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.tables, self._calm = folder / "tables", folder / "undisturbed"
        self._folder = folder
        self._log = CrashLog(folder / "log", seed)
        self.commands: list[RealRun] = []
        self.compared = 0

    def grow(self, steps: int) -> None:
        """Let the log grow by one batch, and apply it undisturbed."""
        self._log.grow(steps)
        last = len(self._log.ends) - 1
        workload = Workload(self._log, vacuum_hours=1)
        workload.apply(self._calm, last - steps, last)

    @contextmanager
    def run(self, fault: str | None = None, *, way: str) -> Iterator[RealRun]:
        """A run of the job."""
        conf = self._folder / f"{way}.toml"
        # samples have times of their own, which the undisturbed tables do not have
        conf.write_text(f"{WAYS[way]}[lag]\ninterval_seconds = 0\n")
        now = str(self._log.time_ms(len(self._log.ends)))
        source = ["--source", self._log.address, "--tables", str(self.tables)]
        output = self._folder / f"output-{len(self.commands)}"
        run = RealRun(["run", *source, "--expiry", "apply", "--now", now, "--conf", str(conf)], output, fault=fault)
        self.commands.append(run)
        try:
            yield run
        except BaseException:
            run.kill_all()
            raise

    def finish(self, *, way: str) -> None:
        """Do the remaining work."""
        with self.run(way=way) as run:
            assert run.wait() == 0, run.output

    def compare(self) -> None:
        """Assert that the tables equal those of an undisturbed job."""
        assert check(str(self.tables)) == []
        assert contents(self.tables) == contents(self._calm)
        self.compared += 1

    @property
    def steps(self) -> int:
        """The number of steps of the log."""
        return len(self._log.ends)

    def commits(self) -> int:
        """Number of commits for `batches`: the first one of a run is its claim of the tables."""
        return len(list((self.tables / "batches" / "_delta_log").glob("*.json")))

    def has_more_commits_than(self, before: int) -> bool:
        return self.commits() > before

    def states(self) -> list[Snapshot]:
        """The states after every batch and sweep, undisturbed."""
        batches = TableStore(str(self._calm)).last_batch()
        assert batches is not None
        return [Snapshot.open(str(self._calm), str(number)) for number in range(batches.batch_id + 1)]

    def end(self) -> None:
        """Kill every process that is left."""
        for run in self.commands:
            run.kill_all()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Following]:
    following = Following(tmp_path, SEED)
    yield following
    following.end()


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("way", WAYS)
def test_named_steps(way: str, job: Following) -> None:
    job.grow(2)
    job.finish(way=way)
    job.compare()
    job.grow(2)
    for point in POINTS:
        with job.run(point, way=way) as run:
            if point.endswith("=STOP"):
                assert run.wait_until(run.is_halted)
                run.kill_all()
            else:
                assert run.wait() == -signal.SIGKILL, run.output
        assert check(str(job.tables)) == []
    job.finish(way=way)
    job.compare()


@pytest.mark.timeout(1_200 + 240 * JOBS)
def test_random_moments(job: Following) -> None:
    """Moments are spread over the span from the first write of a run to its end."""
    draw, killed, longest, seen = random.Random(SEED), Counter[str](), SHORTEST, Reader(job.tables)
    started = time.monotonic()
    print(f"seed {SEED}")
    seen.start()
    while killed.total() < JOBS:
        job.grow(1)
        has_ended = False
        while killed.total() < JOBS and not has_ended:
            way, before, delay = draw.choice(list(WAYS)), max(1, job.commits()), draw.random() * SPREAD * longest
            with job.run(way=way) as run:
                run.wait_until(partial(job.has_more_commits_than, before))
                began = time.monotonic()
                has_ended = run.has_ended_after(delay)
                if has_ended:
                    longest = max(SHORTEST, time.monotonic() - began)
                    assert run.wait() == 0, run.output
                else:
                    how = draw.choice(("driver alone", "all"))
                    (run.kill_driver if how == "driver alone" else run.kill_all)()
                    killed[how] += 1
                    # on a busy machine a run takes longer than the one before: without this no run would complete
                    longest *= 1.1
                    print(f"kill {killed.total()}: {how}, {delay:.2f} s after the claim of step {job.steps}", flush=True)
        if not has_ended:
            job.finish(way="in the driver")
        job.compare()
    seen.stop()
    states = job.states()
    print(
        f"{dict(killed)}, {time.monotonic() - started:.0f} s, {len(job.commands)} starts, {job.compared} comparisons, "
        f"{seen.polls} polls saw {len(set(seen.digests))} of {len(states)} states, "
        f"{len(seen.answers)} polls by commands {len(set(seen.answers))}"
    )
    assert seen.findings == []
    for found, of in ((seen.digests, lambda state: digest(contents_of(state))), (seen.answers, answer_of)):
        known = [of(state) for state in states]
        assert set(found) <= set(known)
        order = [known.index(state) for state in found]
        assert order == sorted(order), "a reader saw the tables go back"


class Reader(threading.Thread):
    """Polls what `sql` and `check` do, and every few times with the commands themselves."""

    def __init__(self, tables: Path) -> None:
        super().__init__(daemon=True)
        #: States seen, in this order, by the functions and by the commands.
        self.digests: list[str] = []
        self.answers: list[str] = []
        self.findings: list[str] = []
        self.polls = 0
        self._tables = tables
        self._is_over = threading.Event()

    def run(self) -> None:
        while not self._is_over.wait(0.5):
            try:
                state = digest(contents_of(Snapshot.open(str(self._tables))))
                self.findings += map(str, check(str(self._tables)))
            except UsageError as error:
                # readers see no state before the first batch
                if self.digests:
                    self.findings.append(str(error))
            else:
                self.digests.append(state)
                self.polls += 1
                if self.polls % COMMANDS_EVERY == 0:
                    self._by_commands()

    def _by_commands(self) -> None:
        answer, failure = queried(self._tables)
        if answer is None:
            self.findings.append(failure)
        else:
            self.answers.append(answer)
        self.findings += filter(None, [checked(self._tables)])

    def stop(self) -> None:
        """End the polling."""
        self._is_over.set()
        self.join()
