"""Pages of a cluster with many groups in Chromium: first contentful paint, and the time until a reader's input is drawn.

`PYTHONPATH=tests/support python -m benchmarks.bench_browser --tables DIR`, with tables such as those of bench_pages. Each page is
opened by a new context, without a cache, several times. Interactions are those of the browser's Event Timing: from the input to
the next frame, in steps of 8 ms.
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from browser_pages import View, opened
from browser_pages import launched as browser
from eventually import eventually
from playwright.sync_api import Browser, Page

from benchmarks.page_servers import page_server
from benchmarks.report import print_machine, print_table
from pipelines.query.engine import Snapshot

_ROUNDS = 10
_PAINT = "performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)"
_OBSERVE = """
window.seen = [];
new PerformanceObserver((list) => window.seen.push(...list.getEntries().map((entry) => entry.duration)))
  .observe({ type: "event", durationThreshold: 16, buffered: true });
"""


def main(arguments: list[str] | None = None) -> None:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("--tables", required=True, metavar="DIR", help="folder of the tables")
    options = made.parse_args(arguments)
    print_machine("playwright")
    rows = Snapshot.open(options.tables).query("SELECT group_id FROM groups ORDER BY member_count DESC, group_id LIMIT 1")
    group = rows["group_id"][0].as_py()
    pages = {"overview": "", "groups": "groups", "group": f"groups/{group}", "topics": "topics", "offsets topic": "offsets-topic"}
    with page_server(f"bench={options.tables}") as server, browser() as chromium:
        root = f"http://{server.address}/c/bench/"
        painted = [(name, *_quantiles([_paint(chromium, root + page) for _ in range(_ROUNDS)])) for name, page in pages.items()]
        print_table(("first contentful paint", "p50 ms", "slowest ms"), painted)
        inputs = [(name, *_quantiles(_inputs(chromium, f"{root}groups/{group}", act))) for name, act in _INPUTS.items()]
        print_table(("input on the page of a group", "p50 ms", "slowest ms"), inputs)


def _paint(chromium: Browser, url: str) -> float:
    with opened(chromium, View(), url) as visit:
        paint: float = eventually("a paint", lambda: visit.page.evaluate(_PAINT))[0]
        return paint


def _inputs(chromium: Browser, url: str, act: Callable[[Page], None]) -> Sequence[float]:
    """Durations of the events of an input; those below the observer's threshold count as 16 ms."""
    with opened(chromium, View(), url) as visit:
        visit.page.evaluate(_OBSERVE)
        for _ in range(_ROUNDS):
            act(visit.page)
            visit.page.wait_for_timeout(100)
        found: list[float] = visit.page.evaluate("window.seen")
        return found or [16.0]


def _point_at_chart(page: Page) -> None:
    box = page.locator("svg.group-chart").bounding_box()
    assert box is not None
    for step in range(10):
        page.mouse.move(box["x"] + box["width"] * (0.3 + step * 0.05), box["y"] + 60)


_INPUTS: dict[str, Callable[[Page], None]] = {
    "pause and resume": lambda page: page.locator("#live").click(),
    "open and close the table of a chart": lambda page: page.locator("details.as-table summary").first.click(),
    "point at the chart": _point_at_chart,
    "move the focus": lambda page: page.keyboard.press("Tab"),
}


def _quantiles(values: Sequence[float]) -> tuple[str, str]:
    return f"{np.median(values):.0f}", f"{max(values):.0f}"


if __name__ == "__main__":
    main()
