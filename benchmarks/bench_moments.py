"""Moments of the page for many groups: summaries of the newest batch and of an earlier one, with days of thinned history."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.arguments import parser, short
from benchmarks.bench_lag_tables import Cluster
from benchmarks.lag_histories import write_lag_history
from benchmarks.large_tables import (
    TablesShape,
    copied,
    group_name,
    large_tables,
)
from benchmarks.report import print_machine, print_table
from pipelines.dashboard.live.changed_groups import changed_groups
from pipelines.dashboard.state.moment import Moment
from pipelines.dashboard.state.moment_store import MomentStore
from pipelines.metrics.settings import metrics_settings
from pipelines.metrics.site import Site
from pipelines.runtime.configuration import load_configuration

_COMMITTED = 10_000_000
_ROUNDS = 6
_MEMORY = 256_000_000
#: Thinned history: a row per group and topic every ten minutes.
_THINNED_MS = 600_000


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
        rows = write_lag_history(store, shape, options.days, _THINNED_MS)
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


if __name__ == "__main__":
    main()
