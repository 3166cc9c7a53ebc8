"""`/metrics` and the snapshot behind it, for many groups: time to load a new batch, to render it, and to answer a scrape."""

import gzip
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.arguments import parser, short
from benchmarks.large_tables import copied, large_tables
from benchmarks.report import print_machine, print_table
from coordinator_core.health import EndOffsetSample, samples_table
from pipelines.lag.sampling.sampling import LagSampling
from pipelines.metrics.metrics_text import ClusterMetrics, MetricsText
from pipelines.metrics.settings import MetricsSettings, metrics_settings
from pipelines.query.snapshots.loading import SnapshotLoader
from pipelines.query.snapshots.snapshot_cache import ClusterState
from pipelines.runtime.configuration import load_configuration
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter

_COMMAND = Path(sys.executable).parent / "grouplake"
_INTERVAL = timedelta(seconds=30)
_SAMPLES = 2


def main(arguments: list[str] | None = None) -> None:
    options = parser(__doc__, records="500k", keys="10k", rounds=5).parse_args(arguments)
    print_machine()
    options.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.cache) as folder:
        store = copied(large_tables(options.records[0], options.cache), Path(folder) / "tables")
        _sample(store)
        loader = SnapshotLoader("bench", store.root)
        batch = loader.last_batch()
        assert batch is not None
        started = time.perf_counter()
        snapshot = loader.load(batch)
        print(f"{short(snapshot.lag.table.num_rows)} group partitions, {short(len(snapshot.group_names))} groups")
        print(f"first load: {time.perf_counter() - started:.2f} s\n")
        head = ("settings", "series", "MB", "gzip MB", "render ms", "compress ms", "first scrape ms", "next scrape ms")
        section = load_configuration(None).metrics
        rows = []
        for title, changes in (
            ("default", {}),
            ("groups only", {"granularity": "group"}),
            ("max_series 500k", {"max_series": 500_000}),
            ("all four families", {"families": ["kafka-lag-exporter", "kafka_exporter", "kminion", "burrow"]}),
        ):
            settings = metrics_settings({**section, **changes})

            def render(settings: MetricsSettings = settings) -> ClusterMetrics:
                return ClusterMetrics.of(snapshot, settings, has_cluster_label=False)

            rows.append((title, *_row(settings, render, options.rounds)))
        print_table(head, rows)
        seconds, loaded = _scrapes(store.root, options.rounds)
        print_table(
            ("`grouplake dashboard`", "ms"),
            [("start until the tables are loaded", f"{loaded * 1000:.0f}"), ("scrape with gzip", f"{seconds * 1000:.0f}")],
        )


def _scrapes(root: str, rounds: int) -> tuple[float, float]:
    """Least duration of a scrape of a real server from this process, and of its start."""
    started = time.perf_counter()
    command = [str(_COMMAND), "dashboard", "--tables", root, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[2]
            while not _is_ready(url):
                time.sleep(0.01)
            loaded = time.perf_counter() - started
            request = urllib.request.Request(f"{url}metrics", headers={"Accept-Encoding": "gzip"})
            found = []
            for _ in range(rounds):
                started = time.perf_counter()
                with urllib.request.urlopen(request) as response:
                    response.read()
                found.append(time.perf_counter() - started)
        finally:
            server.terminate()
    return min(found), loaded


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}ready"):
            return True
    except urllib.error.HTTPError:
        return False


def _row(settings: MetricsSettings, render: Callable[[], ClusterMetrics], rounds: int) -> tuple[object, ...]:
    metrics = render()
    now = metrics.snapshot.lag_at
    series = sum(each.series for each in metrics.metrics)
    state = {"bench": ClusterState(metrics)}
    text = MetricsText(settings)
    first = _milliseconds(lambda: text.body(state, now), 1)
    body = text.body(state, now)
    return (
        short(series),
        f"{len(body.text) / 1e6:.1f}",
        f"{len(body.compressed) / 1e6:.2f}",
        f"{_milliseconds(render, rounds):.0f}",
        f"{_milliseconds(lambda: gzip.compress(body.text, 1), rounds):.0f}",
        f"{first:.0f}",
        f"{_milliseconds(lambda: text.body(state, now), rounds):.3f}",
    )


def _milliseconds(call: Callable[[], object], rounds: int) -> float:
    """The least duration of `rounds` calls."""
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        found.append(time.perf_counter() - started)
    return min(found) * 1000


def _sample(store: TableStore) -> None:
    """Samples of a cluster in which most groups are behind by a random number of records."""
    columns = ["topic", "partition", "committed_offset"]
    offsets = store.table("offsets").to_pyarrow_table(columns=columns)
    ends = offsets.group_by(columns[:2]).aggregate([("committed_offset", "max")])
    at = datetime.now(UTC) - _SAMPLES * _INTERVAL
    random = np.random.default_rng(1)
    rows = list(
        zip(ends["topic"].to_pylist(), ends["partition"].to_pylist(), ends["committed_offset_max"].to_pylist(), strict=True)
    )

    def sample(_: object) -> pa.Table:
        ms = int(at.timestamp() * 1000)
        return samples_table(
            EndOffsetSample(None, topic, partition, ms, ms + 10, 0, end + int(random.integers(0, 1000)), None, 1)
            for topic, partition, end in rows
        )

    sampling, writer = LagSampling(sample, lambda: at), TablesWriter.claim(store)
    for _ in range(_SAMPLES):
        at += _INTERVAL
        sampling.sample(writer)


if __name__ == "__main__":
    main()
