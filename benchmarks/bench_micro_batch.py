"""Latency from the append of 1,000 changed offsets to the row in `batches`, by number of offsets in the tables.

A running `grouplake run` follows a folder of segments; the benchmark appends to them and waits for the line that the job prints
when the row is visible. For comparison, executors write the files of every batch.
"""

import argparse
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.arguments import cache_folder, count, counts, short
from benchmarks.large_tables import BULK_ROWS, ERA, NEWEST_MS, TablesShape, copied, large_tables
from benchmarks.offset_changes import Changes, GrowingLog, as_change_rows
from benchmarks.report import print_machine, print_table
from pipelines.batch.apply import BatchApplier
from pipelines.runtime.timestamps import now_ms
from pipelines.tables.store import TableStore, query

_COMMAND = Path(sys.executable).parent / "grouplake"
_BATCH = re.compile(r"batch \d+: ([\d,]+) records read")

#: Uncounted batches before the measurement: the first one starts workers and compiles.
_WARM_UP = 4

#: Every batch exceeds this `bulk_rows`, so executors write its files.
_BY_EXECUTORS = "[job]\nbulk_rows = 0\n"


@dataclass
class Case:
    """Seconds from append to visible row, one per round, and the phases of the batches."""

    seconds: list[float]
    phase_ms: list[dict[str, int]]

    def row(self, *labels: object) -> list[object]:
        """Labels, median and worst seconds, and the longest phases, in ms of the median batch."""
        middle = {name: statistics.median([phases.get(name, 0) for phases in self.phase_ms]) for name in self.phase_ms[0]}
        longest = sorted(middle.items(), key=lambda item: -item[1])[:4]
        described = ", ".join(f"{name} {ms:.0f}" for name, ms in longest if ms)
        return [*labels, f"{statistics.median(self.seconds):.2f}", f"{max(self.seconds):.2f}", described]


class Job:
    """A `grouplake run` that follows a log."""

    def __init__(self, process: subprocess.Popen[str], log: GrowingLog, changes: Changes) -> None:
        self._process = process
        self._log = log
        self._changes = changes
        self._end = sum(changes.next_offsets.values())

    def round(self, groups: int, offsets: int) -> float:
        """Append a round of changes, wait until it is in the tables, and return the seconds."""
        batches = self._changes.round(groups, offsets, now_ms())
        end = sum(self._changes.next_offsets.values())
        awaited = end - self._end
        started = time.monotonic()
        self._log.append(batches)
        assert self._process.stderr is not None
        line = ""
        while awaited > 0:
            before, line = line, self._process.stderr.readline()
            if not line:
                raise RuntimeError(f"the job ended; its output before: {before}")
            if found := _BATCH.match(line):
                awaited -= int(found[1].replace(",", ""))
        self._end = end
        return time.monotonic() - started


@contextmanager
def following(store: TableStore, shape: TablesShape, folder: Path, trigger: str, conf: str, seed: int) -> Iterator[Job]:
    """A started job."""
    changes = Changes(shape, seed)
    last = store.last_batch()
    assert last is not None
    changes.go_on(last.next_offsets)
    shutil.rmtree(folder / "log", ignore_errors=True)
    log = GrowingLog(folder / "log", changes.next_offsets)
    (folder / "job.toml").write_text(conf)
    arguments = [
        "--source",
        f"segments:{log.folder}",
        "--tables",
        store.root,
        "--trigger",
        trigger,
        "--conf",
        str(folder / "job.toml"),
    ]
    with subprocess.Popen([_COMMAND, "run", *arguments], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Job(process, log, changes)
        finally:
            process.send_signal(signal.SIGTERM)
            # its standard error must be read until it exits: a full pipe would block it
            assert process.stderr is not None
            process.stderr.read()


def measured(store: TableStore, shape: TablesShape, folder: Path, groups: int, offsets: int, rounds: int, conf: str = "") -> Case:
    """Rounds in sequence, each as soon as the previous one is visible."""
    with following(store, shape, folder, "continuous", conf, seed=groups) as job:
        for _ in range(_WARM_UP):
            job.round(groups, offsets)
        seconds = [job.round(groups, offsets) for _ in range(rounds)]
    return Case(seconds, last_phases(store, rounds))


def steady(store: TableStore, shape: TablesShape, folder: Path, groups: int, offsets: int, rounds: int, every: int) -> Case:
    """Rounds at fixed times, with a trigger of the same interval."""
    with following(store, shape, folder, f"{every}s", "", seed=groups) as job:
        for _ in range(_WARM_UP):
            job.round(groups, offsets)
        seconds, due = [], time.monotonic()
        for _ in range(rounds):
            due += every
            time.sleep(max(0.0, due - time.monotonic()))
            seconds.append(job.round(groups, offsets) + max(0.0, time.monotonic() - due - every))
    return Case(seconds, last_phases(store, rounds))


def last_phases(store: TableStore, batches: int) -> list[dict[str, int]]:
    """Phases of the newest batches."""
    found = query({"batches": store.table("batches")}, f"SELECT phase_ms FROM batches ORDER BY batch_id DESC LIMIT {batches}")
    return [dict(row) for row in found["phase_ms"].to_pylist()]


def after_many_batches(size: int, batches: int, folder: Path) -> TableStore:
    """Tables after this many batches without `maintain`. Cached for later runs; an interrupted preparation is completed."""
    root, finished = folder / f"tables-{size}-after-{batches}", folder / f"tables-{size}-after-{batches}" / "complete"
    if not finished.exists():
        if not TableStore(str(root)).exists():
            copied(large_tables(size, folder), root)
            finished.unlink()
        store = TableStore(str(root))
        last = store.last_batch()
        assert last is not None
        apply_batches(store, TablesShape(size), batches - last.batch_id)
        finished.touch()
    return TableStore(str(root))


def apply_batches(store: TableStore, shape: TablesShape, batches: int, groups: int = 20, offsets: int = 1_000) -> BatchApplier:
    """Write batches of this many changed offsets with the code of the job, without Spark."""
    last = store.last_batch()
    assert last is not None
    changes = Changes(shape, seed=2)
    changes.go_on(last.next_offsets)
    applier = BatchApplier(store, ERA, ERA.default_retention_ms, dict, bulk_rows=BULK_ROWS)
    for _ in range(batches):
        start = changes.next_offsets
        applier.apply_rows(as_change_rows(changes.round(groups, offsets, NEWEST_MS), start))
    return applier


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--offsets", "--records", type=counts, default=counts("10k,1M,10M"), help="offsets in the tables")
    parser.add_argument("--groups", type=counts, default=counts("20,1000"), help="groups per batch")
    parser.add_argument("--changed", type=count, default=1000, help="changed offsets per batch")
    parser.add_argument("--rounds", type=int, default=10, help="measured batches")
    parser.add_argument("--merge-rounds", type=int, default=3, help="measured batches whose files executors write; 0: none")
    parser.add_argument(
        "--steady",
        type=count,
        default=count("1M"),
        help="offsets in the tables of the cases with a trigger of 2 s and without maintenance",
    )
    parser.add_argument("--batches", type=count, default=10_000, help="batches without maintenance; 0: skip that case")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="folder of generated tables")
    options = parser.parse_args(arguments)
    print_machine()
    options.cache.mkdir(parents=True, exist_ok=True)
    many = after_many_batches(options.steady, options.batches, options.cache) if options.batches else None
    with tempfile.TemporaryDirectory(dir=options.cache) as scratch:
        rows = list(cases(options, many, Path(scratch)))
    print_table(["offsets", "groups", "writer", "median s", "worst s", "longest phases, ms"], rows)


def cases(options: argparse.Namespace, many: TableStore | None, scratch: Path) -> Iterator[list[object]]:
    """One row per case."""
    for size in options.offsets:
        shape = TablesShape(size)
        for groups in options.groups:
            for label, conf, rounds in (
                ("files", "", options.rounds),
                ("files of executors", _BY_EXECUTORS, options.merge_rounds),
            ):
                if rounds:
                    store = copied(large_tables(shape.offsets, options.cache), scratch / "tables")
                    found = measured(store, shape, scratch, groups, options.changed, rounds, conf)
                    yield reported(found.row(short(size), groups, label))
    if options.rounds:
        shape = TablesShape(options.steady)
        store = copied(large_tables(shape.offsets, options.cache), scratch / "tables")
        found = steady(store, shape, scratch, options.groups[0], options.changed, 3 * options.rounds, every=2)
        yield reported(found.row(short(options.steady), options.groups[0], "files, trigger 2s"))
        if many is not None:
            found = measured(copied(many, scratch / "tables"), shape, scratch, options.groups[0], options.changed, options.rounds)
            yield reported(found.row(short(options.steady), options.groups[0], f"files, after {options.batches:,} batches"))


def reported(row: list[object]) -> list[object]:
    """Print the row as progress, since a run takes long, and return it."""
    print(*row, sep="; ", file=sys.stderr, flush=True)
    return row


if __name__ == "__main__":
    main()
