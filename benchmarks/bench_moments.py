"""Moments of the page for many groups: summaries of the newest batch and of an earlier one, with days of thinned history."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.arguments import parser, short
from benchmarks.bench_lag_tables import Cluster
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
from benchmarks.report import print_machine, print_table
from pipelines.configuration import load_configuration
from pipelines.dashboard.live.changed_groups import changed_groups
from pipelines.dashboard.moments.moment import Moment
from pipelines.dashboard.moments.moment_store import MomentStore
from pipelines.metrics.settings import metrics_settings
from pipelines.metrics.site import Site
from pipelines.phases import Phases
from pipelines.tables import definitions
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter, stamped
from pipelines.timestamps import TIMESTAMP, at_ms

_COMMITTED = 10_000_000
_ROUNDS = 6
_MEMORY = 256_000_000
#: Thinned history: a row per group and topic every ten minutes.
_THINNED_MS = 600_000
_FILE_BYTES = 16_000_000


def main(arguments: list[str] | None = None) -> None:
    made = parser(__doc__, records="500k", keys="10k", rounds=5)
    made.add_argument("--days", type=int, default=5, help="days of thinned history (default 5)")
    options = made.parse_args(arguments)
    print_machine()
    options.cache.mkdir(parents=True, exist_ok=True)
    offsets = options.records[0]
    with tempfile.TemporaryDirectory(dir=options.cache) as folder:
        store = copied(large_tables(offsets, options.cache, _COMMITTED), Path(folder) / "tables")
        shape = TablesShape(offsets, _COMMITTED)
        rows = _history(store, shape, options.days)
        print(f"{short(shape.groups)} groups, {short(rows)} rows of thinned history")
        cluster = Cluster(store, shape, False)
        assert cluster.sampling.sample(cluster.applier.claim()) is not None
        site = Site({"bench": store.root}, metrics_settings(load_configuration(None).metrics), 1, print)
        moments = MomentStore(site, _MEMORY)
        site.refresh()
        for _ in range(_ROUNDS):
            cluster.advance()
            cluster.sampling.sample(cluster.applier.claim())
        old = site.snapshot("bench")
        site.refresh()
        new = site.snapshot("bench")
        assert old is not None
        assert new is not None
        table = [("changed groups of a batch", *_timed(lambda: changed_groups(old, new), options.rounds))]
        newest = moments.moment("bench")
        table.append(("summaries of the newest batch", *_timed(newest.summaries, 1)))
        table.append(("the same, kept", *_timed(newest.summaries, options.rounds)))
        batch = newest.batch.batch_id
        for title, number in (
            ("past moment, first", batch - 3),
            ("past moment, second", batch - 5),
            ("without samples since", 1),
        ):
            table += _past(moments, title, number)
        print_table(("", "ms, first", "ms, median"), [(name, f"{a * 1e3:.1f}", f"{b * 1e3:.1f}") for name, a, b in table])


def _past(moments: MomentStore, title: str, batch: int) -> list[tuple[str, float, float]]:
    past: list[Moment] = []
    loaded = _timed(lambda: past.append(moments.moment("bench", str(batch))), 1)
    moment = past[0]
    known = moment.summaries()["lag"]
    print(f"{title}: {len(known) - known.null_count} of {len(known)} lags known")
    return [
        (title, *loaded),
        ("  statuses of 50 groups", *_timed(lambda: moment.statuses(_names(50)), 1)),
        ("  lag of a group", *_timed(lambda: moment.lag(group_name(0)), 1)),
    ]


def _names(count: int) -> list[str]:
    return [group_name(number) for number in range(count)]


def _timed(call: Callable[[], object], rounds: int) -> tuple[float, float]:
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return seconds[0], float(np.median(seconds))


def _history(store: TableStore, shape: TablesShape, days: int) -> int:
    """Rows of `lag_history` as `maintain` leaves them: by group, time and topic."""
    times = np.arange(NEWEST_MS - days * 86_400_000, NEWEST_MS, _THINNED_MS) * 1000
    names = sorted((group_name(number), topic) for number in range(shape.groups) for topic in topic_names(number))
    schema = definitions.table("lag_history").schema
    groups = max(1, 2_000_000 // len(times))

    made = [_batch(schema, names[start : start + groups], times) for start in range(0, len(names), groups)]
    writer = TablesWriter.claim(store)
    writer.begin()

    def append(table: DeltaTable, stamp: str) -> bool:
        rows = pa.RecordBatchReader.from_batches(schema, made)
        write_deltalake(table, rows, mode="append", target_file_size=_FILE_BYTES, commit_properties=stamped(stamp))
        return True

    writer.commit("lag_history", append)
    writer.finish(
        Phases(at_ms(NEWEST_MS)),
        at_ms(NEWEST_MS),
        era=ERA.name,
        retention_ms=ERA.default_retention_ms,
        next_offsets={partition: end for partition, end in shape.next_offsets.items() if end},
        records_read=0,
        records_kept=0,
    )
    return sum(each.num_rows for each in made)


def _batch(schema: pa.Schema, names: list[tuple[str, str]], times: np.ndarray) -> pa.RecordBatch:
    count = len(names) * len(times)
    pairs = np.array(names, object)
    lag = np.arange(count) % 1000
    zeros = pa.array(np.zeros(count, np.int32))
    columns = {
        "group_id": pa.array(np.repeat(pairs[:, 0], len(times)), pa.string()),
        "topic": pa.array(np.repeat(pairs[:, 1], len(times)), pa.string()),
        "sampled_at": pa.array(np.tile(times, len(names)), TIMESTAMP),
        "partitions": pa.array(np.full(count, PARTITIONS_PER_TOPIC, np.int32)),
        "unknown_partitions": zeros,
        "lag": pa.array(lag),
        "blocked_partitions": zeros,
        "behind": pa.ListArray.from_arrays(
            pa.array(np.zeros(count + 1, np.int32)), pa.array([], schema.field("behind").type.value_type)
        ),
        "commits_read_until": pa.array(np.tile(times, len(names)), TIMESTAMP),
        "batch_id": pa.array(np.zeros(count, np.int64)),
    }
    arrays = [columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in schema]
    return pa.record_batch(arrays, schema=schema)


if __name__ == "__main__":
    main()
