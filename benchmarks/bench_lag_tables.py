"""A sample of end offsets in tables of many groups: CPU seconds of one core until lag and statuses are written.

A tenth of the groups commit all partitions of one topic between two samples; a fiftieth of them has stopped and falls behind.
In the worst case all groups have stopped, so that a rule fires for every partition.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.arguments import cache_folder, count, short
from benchmarks.large_tables import (
    ERA,
    NEWEST_MS,
    PARTITIONS_PER_TOPIC,
    TablesShape,
    copied,
    group_name,
    large_tables,
    topic_names,
)
from benchmarks.offset_changes import as_change_rows
from benchmarks.report import print_machine, print_table
from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.health import EndOffsetSample, samples_table
from coordinator_core.log.record_batch import BatchRecord, write_batch
from pipelines.batch.apply import BatchApplier
from pipelines.lag.sampling.sampling import LagSampling
from pipelines.tables import definitions
from pipelines.tables.store import Batch, TableStore

_COMMITTED = 10_000_000
_INTERVAL_MS = 30_000
_ACTIVE_EVERY = 10
_STOPPED_EVERY = 50


class Cluster:
    """Topics of which the active ones grow by one record an interval; and a job that follows the commits."""

    def __init__(self, store: TableStore, shape: TablesShape, all_grow: bool) -> None:
        self.now_ms, self.round = NEWEST_MS, 0
        self._shape, self._all_grow = shape, all_grow
        self._next = dict(shape.next_offsets)
        self.applier = BatchApplier(store, ERA, ERA.default_retention_ms, dict, 10_000_000, clock=self.clock)
        self.sampling = LagSampling(self._answers, self.clock)

    def clock(self) -> datetime:
        """Time of the simulation."""
        return datetime.fromtimestamp(self.now_ms / 1000, UTC)

    def advance(self) -> int:
        """An interval later: commits of the active groups are in the tables. Returns their number."""
        self.now_ms += _INTERVAL_MS
        self.round += 1
        if self._all_grow:
            return 0
        start, batches, commits = dict(self._next), {}, 0
        for partition in start:
            pairs = [pair for group in self._shape.of_partition(partition).tolist() for pair in self._commits(group)]
            if pairs:
                first = self._next[partition]
                batch = write_batch([BatchRecord(first + at, self.now_ms, *pair) for at, pair in enumerate(pairs)])
                batches[partition] = batch
                self._next[partition] = first + len(pairs)
                commits += len(pairs)
        self.applier.apply_rows(as_change_rows(batches, start))
        return commits

    def _commits(self, group: int) -> Iterator[tuple[bytes, bytes | None]]:
        is_active = _is_active(topic_names(group)[0])
        if is_active and (group // _ACTIVE_EVERY) % _STOPPED_EVERY:
            value = OffsetCommitValue(_COMMITTED + self.round, 0, "", self.now_ms)
            for partition in range(PARTITIONS_PER_TOPIC):
                yield encode(Record(1, OffsetCommitKey(group_name(group), topic_names(group)[0], partition), value, 3))

    def _answers(self, wanted: Mapping[str, set[int]]) -> pa.Table:
        at = self.now_ms + 100
        samples = []
        for topic, partitions in wanted.items():
            end = _COMMITTED + (self.round if self._all_grow or _is_active(topic) else 0)
            samples += [EndOffsetSample(topic, topic, partition, at, at + 20, 0, end, None, 1) for partition in partitions]
        return samples_table(samples)


def _is_active(topic: str) -> bool:
    return topic.startswith("orders-") and int(topic.removeprefix("orders-")) % _ACTIVE_EVERY == 0


def main(arguments: list[str] | None = None) -> None:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("--offsets", type=count, default=500_000, help="committed offsets in the tables (default 500k)")
    made.add_argument("--rounds", type=int, default=5, help="samples after the first one (default 5)")
    made.add_argument("--cache", type=Path, default=cache_folder(), help="folder of generated tables")
    options = made.parse_args(arguments)
    print_machine()
    store = large_tables(options.offsets, options.cache, _COMMITTED)
    rows, phases, sizes = [], [], []
    for case, all_grow in (("2 % of a tenth behind", False), ("all behind and stopped", True)):
        with _folder() as folder:
            copy = copied(store, folder / "tables")
            cluster = Cluster(copy, TablesShape(options.offsets, _COMMITTED), all_grow)
            first, _ = _sampled(cluster)
            later, batches, changed = [], [], 0
            before = _stored(copy)
            for _ in range(options.rounds):
                changed = cluster.advance()
                seconds, batch = _sampled(cluster)
                later.append(seconds)
                batches.append(batch)
            rows.append(
                (case, short(options.offsets), short(changed), f"{first:.2f}", f"{np.median(later):.2f}", f"{max(later):.2f}")
            )
            middle = {name: int(np.median([batch.phase_ms[name] for batch in batches])) for name in batches[-1].phase_ms}
            phases.append((case, ", ".join(f"{name} {ms}" for name, ms in middle.items())))
            after = _stored(copy)
            sizes.append((case, *(f"{(after[name] - before[name]) / options.rounds / 1e6:.2f}" for name in definitions.SAMPLED)))
    print_table(("groups", "offsets", "changed offsets", "first sample, s", "later samples, s", "worst, s"), rows)
    print_table(("groups", "ms of the phases"), phases)
    print_table(("MB written per sample", *definitions.SAMPLED), sizes)


def _sampled(cluster: Cluster) -> tuple[float, Batch]:
    started = time.process_time()
    batch = cluster.sampling.sample(cluster.applier.claim())
    assert batch is not None
    return time.process_time() - started, batch


def _stored(store: TableStore) -> dict[str, int]:
    return {name: sum(path.stat().st_size for path in Path(store.path(name)).rglob("*.parquet")) for name in definitions.SAMPLED}


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="grouplake-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
