"""Tables over simulated days: batches, samples and maintenance, whose growth is reported.

    PYTHONPATH=tests/support:. python tests/support/year_of_tables.py --days 365

Grouplake takes the time as an argument. delta-rs reads the clock for commits, vacuum and log cleanup, and compares it with the
times of files: so the simulation is a process of its own under Debian's libfaketime, and gives every new file the simulated time.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from debian_packages import clock_from
from log_builder import Log, member
from table_logs import change_table

from coordinator_core.health import EndOffsetSample, keep_rules, samples_table
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.lag.sampling.sampling import LagSampling
from pipelines.query.check import check
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.upkeep.maintain import Maintenance
from pipelines.upkeep.steps import MaintenanceInSteps

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ERA = Era.named("4")
TOPICS = 4
PARTITIONS = 6


@dataclass(frozen=True)
class Load:
    """What happens in a day: batches of commits of `groups`, samples, and maintenance with these limits or without."""

    groups: int = 20
    batches: int = 2
    samples: int = 4
    commits: int = 80
    history_days: int = 30
    vacuum_hours: int = 72
    keep: str = "2d:all 7d:12h 30d:1d"
    #: Days between two maintenances; 0 for none.
    maintain_days: int = 1


@dataclass(frozen=True)
class Day:
    """Measurements at the end of a day."""

    day: int
    megabytes: float
    files: int
    rows: Mapping[str, int]
    batch_ms: float


class Simulation:
    """The job of `Load` on tables below `root`."""

    def __init__(self, root: Path, load: Load) -> None:
        self._root, self._load = root, load
        self._now = BEGIN
        self._log = Log(partition=0)
        self._draw = random.Random(7)
        self._positions: dict[tuple[str, str, int], int] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self._touched: set[str] = set()
        store = TableStore(str(root))
        store.create()
        self._applier = BatchApplier(store, ERA, ERA.default_retention_ms, dict, bulk_rows=10**9, clock=lambda: self._now)
        self._sampling = LagSampling(self._answers, lambda: self._now)

    def days(self, count: int, report_every: int) -> Iterator[Day]:
        """Run day after day."""
        for day in range(1, count + 1):
            took = self._day()
            if day % report_every == 0 or day == count:
                yield self._measured(day, took)

    def _day(self) -> float:
        midnight = self._now
        events = sorted(
            [(n / self._load.batches, "batch") for n in range(self._load.batches)]
            + [((n + 0.5) / self._load.samples, "sample") for n in range(self._load.samples)]
        )
        took = []
        for share, event in events:
            self._advance(midnight + share * timedelta(days=1))
            started = time.monotonic()
            if event == "batch":
                self._batch()
                took.append(time.monotonic() - started)
            else:
                self._sampling.sample(self._applier.claim())
            self._touch()
        self._advance(midnight + timedelta(days=1))
        day = (self._now - BEGIN).days
        if self._load.maintain_days and day % self._load.maintain_days == 0:
            limits = Maintenance(self._load.history_days, self._load.vacuum_hours, 16, keep_rules(self._load.keep))
            MaintenanceInSteps(str(self._root), self._hold, limits, self._now).run(lambda: False)
        self._touch()
        return sum(took) / len(took)

    def _batch(self) -> None:
        start, at = self._log.end, int(self._now.timestamp() * 1000)
        for _ in range(self._load.commits):
            group, topic = f"g{self._draw.randrange(self._load.groups)}", f"t{self._draw.randrange(TOPICS)}"
            partition = self._draw.randrange(PARTITIONS)
            end = self._ends[topic, partition] = self._ends.get((topic, partition), 0) + self._draw.randrange(100)
            before = self._positions.get((group, topic, partition), 0)
            position = self._positions[group, topic, partition] = self._draw.randint(before, end)
            self._log.commit(partition, position, group=group, topic=topic, at=at)
        group = f"g{self._draw.randrange(self._load.groups)}"
        self._log.group([member(f"m{at}")], group=group, generation=start + 1, timestamp=at)
        self._log.records[start:] = [record._replace(timestamp=at) for record in self._log.records[start:]]
        self._applier.apply_rows(change_table(self._log, ERA, start, self._log.end))

    def _answers(self, wanted: Mapping[str, set[int]]):  # type: ignore[no-untyped-def]  # pyarrow has no types
        at = int(self._now.timestamp() * 1000)
        return samples_table(
            EndOffsetSample("id", topic, partition, at, at, 0, self._ends.get((topic, partition), 0))
            for topic, partitions in sorted(wanted.items())
            for partition in sorted(partitions)
        )

    @contextmanager
    def _hold(self) -> Iterator[TablesWriter]:
        yield self._applier.claim()

    def _advance(self, now: datetime) -> None:
        self._now = now
        set_clock(now)

    def _touch(self) -> None:
        at = self._now.timestamp()
        present = {f"{folder}/{name}" for folder, _, names in os.walk(self._root) for name in names}
        for path in present - self._touched:
            os.utime(path, (at, at))
        self._touched = present

    def _measured(self, day: int, took: float) -> Day:
        assert check(str(self._root)) == []
        sizes = [os.stat(path).st_size for path in self._touched]
        store = TableStore(str(self._root))
        names = ("batches", "offset_history", "end_offsets", "lag_history")
        rows = {name: sum(store.table(name).get_add_actions()["num_records"].to_pylist()) for name in names}
        return Day(day, sum(sizes) / 1e6, len(sizes), rows, took * 1000)


def set_clock(now: datetime) -> None:
    """Set the clock of this process, which libfaketime reads from the environment each time."""
    os.environ["FAKETIME"] = f"@{now:%Y-%m-%d %H:%M:%S}"


def simulated(folder: Path, days: int, report_every: int, load: Load) -> Iterator[Day]:
    """Run a simulation in a process under libfaketime. Skips the test on a machine without apt."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **clock_from(BEGIN), "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = ["--inner", str(folder), "--days", str(days), "--every", str(report_every), "--load", json.dumps(load.__dict__)]
    with subprocess.Popen([sys.executable, __file__, *arguments], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield Day(**json.loads(line))
    assert process.returncode == 0


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--every", type=int, default=30)
    parser.add_argument("--maintain-days", type=int, default=1, help="days between two maintenances; 0: none")
    parser.add_argument("--inner", type=Path)
    parser.add_argument("--load", default="{}")
    options = parser.parse_args()
    load = Load(**{"maintain_days": options.maintain_days, **json.loads(options.load)})
    if options.inner is not None:
        # under libfaketime a sleep fails, and no other thread writes these tables
        time.sleep = lambda _seconds: None
        simulation = Simulation(options.inner / "tables", load)
        for day in simulation.days(options.days, options.every):
            print(json.dumps(day.__dict__), flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        for number, day in enumerate(simulated(Path(folder), options.days, options.every, load)):
            if number == 0:
                print(f"| day | MB | files | ms per batch | {' | '.join(day.rows)} |\n|{'---|' * (4 + len(day.rows))}")
            rows = " | ".join(f"{count:,}" for count in day.rows.values())
            print(f"| {day.day} | {day.megabytes:.1f} | {day.files:,} | {day.batch_ms:.0f} | {rows} |", flush=True)


if __name__ == "__main__":
    main()
