"""Events of the example history appear on the time axis of their group where they happened, and in words at their time."""

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from browser_pages import View, Window
from dashboards import Dashboard, dashboard
from playwright.sync_api import Page
from shop_history import at, rows, shop_tables

from pipelines.examples.history import incidents
from pipelines.examples.history.topics import MINUTE

#: The first test builds the tables, which takes minutes beside other work.
pytestmark = [pytest.mark.browser, pytest.mark.long]

#: Half the width of a line, and the rounding of its place, in units of the drawing.
_NEAR = 0.6


@pytest.fixture(scope="module")
def shop() -> Iterator[Dashboard]:
    """A server of the example history."""
    with dashboard(f"shop={shop_tables()}") as running:
        yield running


def places(page: Page, selector: str, attribute: str = "x1") -> list[float]:
    """The places of elements of the chart."""
    return [float(each.get_attribute(attribute) or "nan") for each in page.locator(f"svg.group-chart {selector}").all()]


def place(page: Page, when: datetime) -> float:
    """Where a time is on the axis, computed from its ends as the page states them."""
    axis: dict[str, Any] = page.locator("svg.group-chart").evaluate("chart => ({ ...chart.dataset })")
    start, end = (datetime.fromisoformat(axis[name]) for name in ("start", "end"))
    left, right = float(axis["left"]), float(axis["right"])
    return left + (when - start) / (end - start) * (right - left)


def test_rebalances_of_a_storm(window: Window, shop: Dashboard) -> None:
    after = at(incidents.STORM_AT + incidents.STORM_MS + 10 * MINUTE)
    found = rows(
        "SELECT recorded_at FROM rebalances WHERE group_id = 'search-indexer' "
        f"AND recorded_at BETWEEN TIMESTAMP '{at(incidents.STORM_AT)}' AND TIMESTAMP '{after}'"
    )
    assert len(found) == incidents.STORM_REBALANCES
    url = f"{shop.url}/c/shop/groups/search-indexer?span=3h&as_of={after.strftime('%Y-%m-%dT%H:%M:%SZ')}"
    with window.opened(View(), url) as visit:
        lines = places(visit.page, ".marks line.rebalance")
        for row in found:
            wanted = place(visit.page, row["recorded_at"])
            assert any(abs(line - wanted) <= _NEAR for line in lines), (row, wanted, lines)
        assert visit.errors == []


def test_a_reset(window: Window, shop: Dashboard) -> None:
    after = at(incidents.RESET_AT + 10 * MINUTE)
    url = f"{shop.url}/c/shop/groups/recommendations?span=1h&as_of={after.strftime('%Y-%m-%dT%H:%M:%SZ')}"
    with window.opened(View(), url) as visit:
        wanted = place(visit.page, at(incidents.RESET_AT))
        lines = places(visit.page, ".marks line.reset")
        assert lines
        assert all(abs(line - wanted) <= _NEAR for line in lines), (wanted, lines)
        event = visit.page.locator(".events li", has_text="reset").first.inner_text()
        assert f"{at(incidents.RESET_AT):%H:%M:%S}" in event


def test_lag_of_a_stuck_partition_grows_from_then_on(window: Window, shop: Dashboard) -> None:
    with window.opened(View(), f"{shop.url}/c/shop/groups/billing?span=6h") as visit:
        wanted = place(visit.page, at(incidents.STUCK_AT))
        points: list[dict[str, float]] = visit.page.locator("svg.group-chart .panel.age path.line").evaluate(
            """line => Array.from({ length: 801 }, (_, step) => {
              const { x, y } = line.getPointAtLength(line.getTotalLength() * step / 800);
              return { x, y };
            })"""
        )
        flat = [point["y"] for point in points if point["x"] < wanted - 5]
        rising = [point["y"] for point in points if point["x"] > wanted + 10]
        assert max(flat) - min(flat) < (max(flat) - min(rising)) / 5, "the age is low until then"
        assert all(after <= before + 0.01 for before, after in pairwise(rising)), "and grows afterwards"
