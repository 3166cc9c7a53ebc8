"""Pages of a cluster with many groups: time of the server, bytes, memory, a past moment, and viewers in live mode.

`python -m benchmarks.bench_pages [--days 365] [--every 60]`: the tables have that many days of history, thinned to one row per
group and topic in `--every` minutes. Every page is viewed after the start of the server, after a new batch, and again.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import numpy as np

from benchmarks.arguments import parser, short
from benchmarks.bench_lag_tables import Cluster
from benchmarks.lag_histories import write_lag_history
from benchmarks.large_tables import TablesShape, copied, group_name, large_tables, topic_names
from benchmarks.page_servers import PageServer, Viewers, page_server
from benchmarks.processes import MemorySampler, cpu_seconds, resident_mib
from benchmarks.report import print_machine, print_table

_COMMITTED = 10_000_000
_BATCHES = 6
_MINUTE_MS = 60_000
#: Pages of one kind, of different groups or topics.
_PAGES = 40
_AGAIN = 5
#: Pages that Chromium paints.
_PAINTED = ("", "groups", f"groups/{quote(group_name(0))}", "topics", "offsets-topic")
_TABS = ("members", "expiry", "resets", "transactions", "records")

#: Kind of page → seconds of its requests.
Times = Mapping[str, Sequence[float]]


def main(arguments: list[str] | None = None) -> None:
    made = parser(__doc__, records="500k", keys="10k", rounds=1)
    made.add_argument("--days", type=int, default=365, help="days of thinned history (default 365)")
    made.add_argument("--every", type=int, default=60, help="minutes between its rows (default 60)")
    made.add_argument("--viewers", type=int, default=100, help="pages in live mode (default 100)")
    made.add_argument("--browser", action="store_true", help="Chromium too; needs PYTHONPATH=tests/support")
    options = made.parse_args(arguments)
    print_machine()
    offsets = options.records[0]
    with tempfile.TemporaryDirectory(dir=options.cache) as folder:
        store = copied(large_tables(offsets, options.cache, _COMMITTED), Path(folder) / "tables")
        shape = TablesShape(offsets, _COMMITTED)
        rows = write_lag_history(store, shape, options.days, options.every * _MINUTE_MS)
        print(f"{short(shape.groups)} groups, {rows:,} rows of thinned history\n")
        cluster = Cluster(store, shape, False)
        for _ in range(_BATCHES):
            _advance(cluster)
        with page_server(f"bench={store.root}") as server, MemorySampler(server.pid) as memory:
            loaded = resident_mib(server.pid)
            _measure_pages(server, cluster, _paths(shape.groups))
            viewed = resident_mib(server.pid)
            if options.browser:
                from benchmarks.page_paints import measure_paints

                measure_paints(server, _PAINTED, f"groups/{quote(group_name(0))}")
            print_table(("past moment", "ms"), _past(server))
            print_table(("viewers", "p50 s", "slowest s", "CPU s of the server"), [_viewers(server, cluster, options.viewers)])
        peak = max(each.mib for each in memory.peaks.values())
        print_table(("memory", "MiB"), [("loaded", f"{loaded:.0f}"), ("pages viewed", f"{viewed:.0f}"), ("peak", f"{peak:.0f}")])


def _advance(cluster: Cluster) -> None:
    cluster.advance()
    cluster.sampling.sample(cluster.applier.claim())


def _paths(groups: int) -> dict[str, list[str]]:
    """Kind of page → pages."""
    numbers = range(0, groups, max(1, groups // _PAGES))
    some = [quote(group_name(number)) for number in numbers]
    topics = [quote(topic_names(number)[0]) for number in numbers]
    return {
        "overview": [""],
        "groups": ["groups"],
        "groups, filtered": [f"groups?q={number}" for number in range(_PAGES)],
        "groups, sorted": [f"groups?sort={name}" for name in ("age", "lag", "group", "members")],
        "group": [f"groups/{name}" for name in some],
        **{f"group, {tab}": [f"groups/{name}?tab={tab}" for name in some] for tab in _TABS},
        "topics": ["topics"],
        "topic": [f"topics/{name}" for name in topics],
        "clients": ["clients"],
        "offsets topic": ["offsets-topic"],
        "alerts": ["alerts"],
    }


def _measure_pages(server: PageServer, cluster: Cluster, paths: Mapping[str, Sequence[str]]) -> None:
    started = {kind: [server.get(path)[0] for path in some] for kind, some in paths.items()}
    before = server.newest_batch()
    _advance(cluster)
    while server.newest_batch() < before + 2:
        time.sleep(0.1)
    # the summaries of the batch are made in the background
    time.sleep(3)
    changed = {kind: [server.get(path)[0] for path in some] for kind, some in paths.items()}
    again = {kind: [server.get(path)[0] for path in some for _ in range(_AGAIN)] for kind, some in paths.items()}
    sizes = {kind: max(len(server.get(path)[1]) for path in some) / 1000 for kind, some in paths.items()}
    head = ("page", "after the start, p50 ms", "p99", "in a new batch, p50 ms", "p99", "again, p50 ms", "p99", "kB")
    measured = (started, changed, again)
    rows = [(kind, *chain(*(_quantiles(times[kind]) for times in measured)), f"{sizes[kind]:.0f}") for kind in paths]
    whole = [list(chain(*times.values())) for times in measured]
    print_table(head, [*rows, ("all", *chain(*map(_quantiles, whole)), f"{max(sizes.values()):.0f}")])


def _quantiles(seconds: Sequence[float]) -> tuple[str, str]:
    return f"{np.median(seconds) * 1e3:.1f}", f"{np.quantile(seconds, 0.99) * 1e3:.1f}"


def _past(server: PageServer) -> list[Sequence[object]]:
    batch = server.newest_batch()
    pages = {
        "overview": f"?as_of={batch - 3}",
        "another page of that moment": f"groups?as_of={batch - 3}",
        "groups": f"groups?as_of={batch - 5}",
        "group": f"groups/{group_name(5)}?as_of={batch - 7}",
    }
    return [(name, f"{server.get(path)[0] * 1e3:.0f}") for name, path in pages.items()]


def _viewers(server: PageServer, cluster: Cluster, count: int) -> Sequence[object]:
    """The pages of as many groups are open when a batch comes."""
    viewers = Viewers(server, [f"groups/{quote(group_name(number))}" for number in range(count)])
    before = cpu_seconds(server.pid)
    _advance(cluster)
    seconds = viewers.wait_for(count)
    spent = cpu_seconds(server.pid) - before
    return count, f"{np.median(seconds):.2f}", f"{max(seconds):.2f}", f"{spent:.2f}"


if __name__ == "__main__":
    main()
