"""Pages of a cluster with many groups: time of the server, bytes, memory, a past moment, and viewers in live mode.

`python -m benchmarks.bench_pages [--days 365] [--every 60]`: the tables have that many days of history, thinned to one row per
group and topic in `--every` minutes. "First" is the first view of a page in a batch, over several pages of its kind.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np

from benchmarks.arguments import parser, short
from benchmarks.bench_lag_tables import Cluster
from benchmarks.lag_histories import write_lag_history
from benchmarks.large_tables import TablesShape, copied, group_name, large_tables, topic_names
from benchmarks.page_servers import PageServer, Viewers, page_server
from benchmarks.processes import MemorySampler, cpu_seconds
from benchmarks.report import print_machine, print_table

_COMMITTED = 10_000_000
_ROUNDS = 6
_MINUTE_MS = 60_000
#: Pages of one kind that are viewed for the first time.
_PAGES = 40
_AGAIN = 5
_ROOT = "/c/bench/"
_TABS = ("members", "expiry", "resets", "transactions", "records")


def main(arguments: list[str] | None = None) -> None:
    made = parser(__doc__, records="500k", keys="10k", rounds=1)
    made.add_argument("--days", type=int, default=365, help="days of thinned history (default 365)")
    made.add_argument("--every", type=int, default=60, help="minutes between its rows (default 60)")
    made.add_argument("--viewers", type=int, default=100, help="pages in live mode (default 100)")
    options = made.parse_args(arguments)
    print_machine()
    offsets = options.records[0]
    with tempfile.TemporaryDirectory(dir=options.cache) as folder:
        store = copied(large_tables(offsets, options.cache, _COMMITTED), Path(folder) / "tables")
        shape = TablesShape(offsets, _COMMITTED)
        rows = write_lag_history(store, shape, options.days, options.every * _MINUTE_MS)
        print(f"{short(shape.groups)} groups, {rows:,} rows of thinned history\n")
        cluster = Cluster(store, shape, False)
        _next_batches(cluster, _ROUNDS)
        with page_server(f"bench={store.root}") as server, MemorySampler(server.pid) as memory:
            print_table(("page", "first, p50 ms", "p99 ms", "again, p50 ms", "p99 ms", "kB"), _page_rows(server, shape.groups))
            newest = store.last_batch()
            assert newest is not None
            print_table(("past moment", "ms"), _past_rows(server, newest.batch_id))
            viewers = Viewers(
                server.address, [f"{_ROOT}groups/{group_name(at)}" for at in range(options.viewers)], f"{_ROOT}events"
            )
            before = cpu_seconds(server.pid)
            _next_batches(cluster, 1)
            seconds = viewers.wait_for(options.viewers)
            print_table(
                ("viewers", "p50 s", "slowest s", "CPU s of the server"),
                [
                    (
                        options.viewers,
                        *(f"{value:.2f}" for value in (np.median(seconds), max(seconds), cpu_seconds(server.pid) - before)),
                    )
                ],
            )
        print(f"memory: {max(peak.mib for peak in memory.peaks.values()):.0f} MiB")


def _next_batches(cluster: Cluster, count: int) -> None:
    for _ in range(count):
        cluster.advance()
        cluster.sampling.sample(cluster.applier.claim())


def _viewed(server: PageServer, cluster: Cluster, count: int) -> Sequence[object]:
    """The pages of as many groups are open when a batch comes."""
    viewers = Viewers(server.address, [f"{_ROOT}groups/{group_name(at)}" for at in range(count)], f"{_ROOT}events")
    before = cpu_seconds(server.pid)
    _next_batches(cluster, 1)
    seconds = viewers.wait_for(count)
    spent = cpu_seconds(server.pid) - before
    return count, f"{np.median(seconds):.2f}", f"{max(seconds):.2f}", f"{spent:.2f}"


def _page_rows(server: PageServer, groups: int) -> list[Sequence[object]]:
    some = [group_name(number) for number in range(0, groups, max(1, groups // _PAGES))]
    topics = [topic_names(number)[0] for number in range(_PAGES)]
    kinds = {
        "overview": [_ROOT],
        "groups": [f"{_ROOT}groups"],
        "groups, filtered": [f"{_ROOT}groups?q={number}" for number in range(_PAGES)],
        "groups, sorted": [f"{_ROOT}groups?sort={name}" for name in ("age", "lag", "group", "members")],
        "group": [f"{_ROOT}groups/{quote(name)}" for name in some],
        **{f"group, {tab}": [f"{_ROOT}groups/{quote(name)}?tab={tab}" for name in some] for tab in _TABS},
        "topics": [f"{_ROOT}topics"],
        "topic": [f"{_ROOT}topics/{quote(name)}" for name in topics],
        "clients": [f"{_ROOT}clients"],
        "offsets topic": [f"{_ROOT}offsets-topic"],
        "alerts": [f"{_ROOT}alerts"],
    }
    rows: list[Sequence[object]] = []
    for kind, paths in kinds.items():
        first = [server.get(path) for path in paths]
        again = [server.get(path)[0] for path in paths for _ in range(_AGAIN)]
        kilobytes = max(len(body) for _, body in first) / 1000
        rows.append((kind, *_times([seconds for seconds, _ in first]), *_times(again), f"{kilobytes:.0f}"))
    return rows


def _times(seconds: list[float]) -> tuple[str, str]:
    return f"{np.median(seconds) * 1e3:.1f}", f"{np.quantile(seconds, 0.99) * 1e3:.1f}"


def _past_rows(server: PageServer, batch: int) -> list[Sequence[object]]:
    pages = {
        "overview": f"{_ROOT}?as_of={batch - 3}",
        "another page of that moment": f"{_ROOT}groups?as_of={batch - 3}",
        "groups": f"{_ROOT}groups?as_of={batch - 5}",
        "group": f"{_ROOT}groups/{group_name(5)}?as_of={batch - 7}",
    }
    return [(name, f"{server.get(path)[0] * 1e3:.0f}") for name, path in pages.items()]


if __name__ == "__main__":
    main()
