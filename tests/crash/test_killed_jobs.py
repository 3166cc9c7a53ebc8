"""The real `grouplake run`, killed while its log grows: driver, JVM and workers at once, or the driver alone.

CRASH_JOBS says how many random kills the long test does; each costs a start of Spark.
"""

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from crash_log import CrashLog
from real_runs import RealRun
from table_contents import contents

from pipelines.query.check import check
from pipelines.tables.store import TableStore

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOBS = int(os.environ.get("CRASH_JOBS", "20"))
SEED = int(os.environ.get("CRASH_SEED", "20261121"))

#: Fault points of the job that are reached once in a run with a batch and a sweep; the first is in a Python worker.
POINTS = ("source:read=STOP", "claimed", "after:offsets", "before:batches", "after:batches", "sweep:after:offsets")


class Following:
    """The job over a growing log, and beside it the same never disturbed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.tables, self._calm = folder / "tables", folder / "undisturbed"
        self._folder = folder
        self.log = CrashLog(folder / "log", seed)
        (folder / "bulk.toml").write_text("[job]\nbulk_rows = 1\n")
        self._runs = 0

    def start(self, tables: Path, fault: str | None = None) -> RealRun:
        self._runs += 1
        # every other step goes through Spark's writer
        conf = ["--conf", str(self._folder / "bulk.toml")] if len(self.log.ends) % 2 == 0 else []
        now = str(self.log.time_ms(len(self.log.ends)))
        arguments = ["run", "--source", self.log.address, "--tables", str(tables), "--expiry", "apply", "--now", now, *conf]
        return RealRun(arguments, self._folder / f"told-{self._runs}", fault=fault)

    def finish(self, tables: Path) -> None:
        run = self.start(tables)
        try:
            assert run.wait() == 0, run.told
        finally:
            run.kill_all()

    def compare(self) -> None:
        """Finishes the step, does it undisturbed as well, and compares."""
        self.finish(self.tables)
        self.finish(self._calm)
        assert check(str(self.tables)) == []
        assert contents(self.tables) == contents(self._calm)

    def is_writing(self) -> bool:
        """Whether the running job has claimed the tables."""
        claims = self.tables / "batches" / "_delta_log"
        return claims.is_dir() and len(list(claims.glob("*.json"))) > self._commits

    def count_commits(self) -> None:
        claims = self.tables / "batches" / "_delta_log"
        self._commits = max(1, len(list(claims.glob("*.json")))) if claims.is_dir() else 1


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("steps", [3, 4], ids=["in the driver", "by Spark"])
def test_named_steps(steps: int, tmp_path: Path) -> None:
    job = Following(tmp_path, SEED)
    job.log.grow(2)
    job.finish(job.tables)
    job.finish(tmp_path / "undisturbed")
    job.log.grow(steps - 2)
    for point in POINTS:
        run = job.start(job.tables, point)
        try:
            if point.endswith("=STOP"):
                assert run.wait_until(run.is_halted)
                run.kill_all()
            else:
                assert run.wait() == -9, run.told
        finally:
            run.kill_all()
        assert check(str(job.tables)) == []
    job.compare()


@pytest.mark.timeout(120 + 90 * JOBS)
def test_random_moments(tmp_path: Path) -> None:
    """Moments are spread over the span from the first write of a run to its end."""
    draw, job, killed, longest = random.Random(SEED), Following(tmp_path, SEED), Counter[str](), 3.0
    print(f"seed {SEED}")
    while killed.total() < JOBS:
        job.log.grow()
        while killed.total() < JOBS:
            job.count_commits()
            run = job.start(job.tables)
            if not run.wait_until(job.is_writing):
                break
            began, delay = time.monotonic(), draw.random() * longest
            while run.process.poll() is None and time.monotonic() - began < delay:
                time.sleep(0.002)
            if run.process.poll() is not None:
                longest = time.monotonic() - began
                break
            how = draw.choice(("all", "driver"))
            if how == "driver":
                run.kill_driver()
            else:
                run.kill_all()
            killed[how] += 1
            if TableStore(str(job.tables)).last_batch() is not None:
                assert check(str(job.tables)) == []
        job.compare()
    print(f"{killed} over {len(job.log.ends)} steps")
