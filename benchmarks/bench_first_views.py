"""First views of pages of groups with many partitions in Chromium: time, bytes, and shifts of the layout.

`PYTHONPATH=tests/support python -m benchmarks.bench_first_views [--groups 20] [--partitions 60] [--samples 60]`: every group is
opened once, by a browser without a cache, at a server that has not drawn its page. Shifts are those of Chromium's Layout
Instability API, of the load and of a new batch that arrives while the page is open.
"""

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from browser_pages import DESKTOP, PHONE, View, launched, opened
from dashboards import configuration_file, dashboard
from eventually import eventually
from layout_shifts import shift_of
from log_builder import member
from playwright.sync_api import Browser, Page
from status_story import Story

from benchmarks.report import print_machine, print_table

_SAMPLE_SECONDS = 60
_PAINTS = """() => new Promise((found) => {
  const times = { response: performance.getEntriesByType("navigation")[0].responseEnd };
  new PerformanceObserver((list) => {
    times.largest = list.getEntries().at(-1).startTime;
    times.first = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? times.largest;
    found(times);
  }).observe({ type: "largest-contentful-paint", buffered: true });
})"""


class Cluster:
    """Groups of one topic each, of which one partition falls behind."""

    def __init__(self, root: str, groups: int, partitions: int) -> None:
        self._story = Story(root)
        self._groups, self._partitions = groups, partitions
        self._samples = 0
        for group in self.groups:
            self._story.log.group([member(f"{group}-{number}", topics=(group,)) for number in range(3)], group=group)

    @property
    def groups(self) -> list[str]:
        return [f"group-{number:02}" for number in range(self._groups)]

    def sample(self) -> None:
        """A batch with a commit of every partition, and a sample."""
        self._samples += 1
        self._story.at(_SAMPLE_SECONDS * self._samples)
        for group in self.groups:
            for partition in range(self._partitions):
                end = 1_000 * self._samples
                self._story.end(end, partition, topic=group)
                self._story.commit(1_000 if partition == 7 else end - partition, partition, group=group, topic=group)
        self._story.sample()


def main(arguments: Sequence[str] | None = None) -> None:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("--groups", type=int, default=20, help="groups that are viewed (default 20)")
    made.add_argument("--partitions", type=int, default=60, help="partitions of each (default 60)")
    made.add_argument("--samples", type=int, default=60, help="samples a minute apart (default 60)")
    options = made.parse_args(arguments)
    print_machine()
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        cluster = Cluster(str(Path(folder) / "bench"), options.groups, options.partitions)
        for _ in range(options.samples):
            cluster.sample()
        conf = configuration_file(Path(folder), {"dashboard": "poll_ms = 50"})
        with dashboard(f"bench={folder}/bench", conf=conf) as server:
            pages = {"overview": "", "groups": "groups", **{group: f"groups/{group}" for group in cluster.groups}}
            urls = {name: f"{server.url}/c/bench/{page}" for name, page in pages.items()}
            _measure_views(browser, urls)
            _measure_shifts(browser, {name: urls[name] for name in ("overview", "groups", cluster.groups[0])}, cluster)


def _measure_views(browser: Browser, urls: dict[str, str]) -> None:
    found: dict[str, list[tuple[float, ...]]] = {}
    for name, url in urls.items():
        with opened(browser, View(), url) as visit:
            times = visit.page.evaluate(_PAINTS)
            kind = name if name in ("overview", "groups") else "group"
            found.setdefault(kind, []).append(tuple(times[each] for each in ("response", "first", "largest")))
    head = ("page", "views", "response, p50 ms", "first paint, p50 ms", "largest paint, p50 ms", "largest paint, slowest ms")
    rows = []
    for kind, views in found.items():
        middle = np.median(np.array(views), axis=0)
        rows.append((kind, len(views), *(f"{each:.0f}" for each in middle), f"{max(each[-1] for each in views):.0f}"))
    print_table(head, rows)


def _measure_shifts(browser: Browser, urls: dict[str, str], cluster: Cluster) -> None:
    rows = []
    for name, url in urls.items():
        for width in (DESKTOP, PHONE):
            with opened(browser, View(width=width), url) as visit:
                loaded = shift_of(visit.page)
                batch = _batch(visit.page)
                cluster.sample()
                # the page's policy forbids scripts that wait in it
                eventually("the new batch", partial(_is_newer, visit.page, batch))
                rows.append((name, width, f"{loaded:.4f}", f"{shift_of(visit.page) - loaded:.4f}"))
    print_table(("page", "width", "shift of the load", "shift of a new batch"), rows)


_BATCH = "document.querySelector('footer p').textContent"


def _batch(page: Page) -> str:
    found: str = page.evaluate(_BATCH)
    return found


def _is_newer(page: Page, batch: str) -> bool:
    return _batch(page) != batch


if __name__ == "__main__":
    main()
