"""Micro-batches of a job that also samples: seconds from a batch being due until it is visible, without samples and beside them.

The code of the job applies a batch of 1,000 changed offsets every two seconds, without Spark, in a thread. The main thread takes
samples as the job does. "Beside samples" has the batches that were due while one was taken.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa

from benchmarks.arguments import cache_folder, count, counts, short
from benchmarks.large_tables import BULK_ROWS, ERA, NEWEST_MS, TablesShape, copied, large_tables
from benchmarks.offset_changes import Changes, as_change_rows
from benchmarks.report import print_machine, print_table
from coordinator_core.health import EndOffsetSample, samples_table
from pipelines.batch.apply import BatchApplier
from pipelines.lag.sampling.sampling import LagSampling
from pipelines.lag.sampling.schedule import SampleSchedule, Sampling
from pipelines.runtime.timestamps import now_ms

#: Topic → partitions → the rows of a sample.
Ends = Callable[[Mapping[str, set[int]]], pa.Table]

_COMMITTED = 10_000_000
_CHANGED = 1_000
_EVERY_SECONDS = 2.0


class Batches:
    """Batches at an interval, in a thread."""

    def __init__(self, applier: BatchApplier, changes: Changes, groups: int) -> None:
        self._applier, self._changes, self._groups = applier, changes, groups
        #: Start and end of each batch, from when it was due.
        self.times: list[tuple[float, float]] = []

    def run(self, number: int) -> None:
        """Apply batches; the rows of each are made before it is due."""
        due = time.monotonic()
        for _ in range(number):
            start = self._changes.next_offsets
            rows = as_change_rows(self._changes.round(self._groups, _CHANGED, NEWEST_MS), start)
            due += _EVERY_SECONDS
            time.sleep(max(0.0, due - time.monotonic()))
            with self._applier.lock:
                self._applier.apply_rows(rows)
            self.times.append((due, time.monotonic()))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--offsets", "--records", type=count, default=count("1M"), help="offsets in the tables (default 1M)")
    parser.add_argument("--groups", type=counts, default=counts("20,1000"), help="groups per batch (default 20,1000)")
    parser.add_argument("--batches", type=int, default=45, help="batches of a case (default 45)")
    parser.add_argument("--interval", type=int, default=30, help="seconds between samples (default 30)")
    parser.add_argument("--stopped", type=int, default=5, help="percent of the topics whose groups have stopped (default 5)")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="folder of generated tables")
    options = parser.parse_args(arguments)
    print_machine()
    store, shape = large_tables(options.offsets, options.cache, _COMMITTED), TablesShape(options.offsets, _COMMITTED)
    rows: list[Sequence[object]] = []
    for groups in options.groups:
        with tempfile.TemporaryDirectory(dir=options.cache) as folder:
            applier = BatchApplier(copied(store, Path(folder) / "tables"), ERA, ERA.default_retention_ms, dict, BULK_ROWS)
            batches = Batches(applier, Changes(shape), groups)
            # the first batch of a process compiles
            batches.run(1)
            batches.times.clear()
            batches.run(options.batches)
            alone, batches.times = [end - due for due, end in batches.times], []
            beside, seconds = _beside_samples(batches, applier, ends(options.stopped), options)
            rows += [
                (short(options.offsets), groups, "without samples", *_quantiles(alone), ""),
                (short(options.offsets), groups, "beside samples", *_quantiles(beside), _quantiles(seconds)[1]),
            ]
    print_table(("offsets", "groups of a batch", "batches", "number", "median s", "worst s", "a sample takes, s"), rows)


def _beside_samples(
    batches: Batches, applier: BatchApplier, ends: Ends, options: argparse.Namespace
) -> tuple[list[float], list[float]]:
    """Seconds of the batches that were due during a sample, and of the samples, without the first one of the process."""
    sampling = LagSampling(ends)
    sampling.sample(applier.claim())
    schedule = SampleSchedule(Sampling(sampling), options.interval, applier.lock, applier.claim, lambda _line: None, now_ms)
    thread = threading.Thread(target=batches.run, args=(options.batches,))
    thread.start()
    samples: list[tuple[float, float]] = []
    while thread.is_alive():
        started = time.monotonic()
        schedule.sample_if_due()
        ended = time.monotonic()
        if ended - started > 0.5:
            samples.append((started, ended))
        time.sleep(0.1)
    during = [end - due for due, end in batches.times if any(start <= end and due <= stop for start, stop in samples)]
    return during, [stop - start for start, stop in samples]


def ends(stopped: int) -> Ends:
    """Answers for partitions: in `stopped` percent of the topics all groups are 1,000 records behind, in the others none is."""

    def answer(wanted: Mapping[str, set[int]]) -> pa.Table:
        at = NEWEST_MS + int(time.monotonic() * 1000)
        latest = {topic: _COMMITTED + (1_000 if crc32(topic.encode()) % 100 < stopped else 0) for topic in wanted}
        return samples_table(
            EndOffsetSample(topic, topic, partition, at, at + 20, 0, latest[topic], None, 1)
            for topic, partitions in wanted.items()
            for partition in partitions
        )

    return answer


def _quantiles(seconds: Sequence[float]) -> tuple[str, str, str]:
    """Number, median and maximum; few short batches may all fall between two samples."""
    if not seconds:
        return "0", "", ""
    return str(len(seconds)), f"{np.median(seconds):.2f}", f"{max(seconds):.2f}"


if __name__ == "__main__":
    main()
