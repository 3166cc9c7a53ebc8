"""Pages in Chromium: first contentful paint, and the time until a reader's input is drawn.

Each page is opened by a new context, without a cache. Inputs are measured by the browser's Event Timing: from the input to the
next frame, in steps of 8 ms. Chromium is that of the tests (`PYTHONPATH=tests/support`).
"""

from collections.abc import Callable, Sequence

import numpy as np
from browser_pages import View, opened
from browser_pages import launched as browser
from eventually import eventually
from playwright.sync_api import Browser, Page

from benchmarks.page_servers import PageServer
from benchmarks.report import print_table

_ROUNDS = 10
_PAINT = "performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)"
_OBSERVE = """
window.seen = [];
new PerformanceObserver((list) => window.seen.push(...list.getEntries().map((entry) => entry.duration)))
  .observe({ type: "event", durationThreshold: 16, buffered: true });
"""


def measure_paints(server: PageServer, pages: Sequence[str], group: str) -> None:
    """Print the paints of pages, and the inputs on the page `group`."""
    with browser() as chromium:
        paints = {page: [_paint(chromium, server.url(page)) for _ in range(_ROUNDS)] for page in pages}
        rows = [(page or "overview", *_quantiles(times)) for page, times in paints.items()]
        print_table(("first contentful paint", "p50 ms", "slowest ms"), rows)
        inputs = [(name, *_quantiles(_inputs(chromium, server.url(group), act))) for name, act in _INPUTS.items()]
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
