"""A span that a reader selects on a chart, with the pointer or with keys, is the span of the page that opens."""

from datetime import datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from browser_pages import PHONE, View, opened
from dashboards import Dashboard
from page_tables import CLUSTER
from playwright.sync_api import Browser, FloatRect, Page, expect

pytestmark = pytest.mark.browser

GROUP = f"/c/{CLUSTER}/groups/billing?span=6h"


def ends(page: Page) -> tuple[datetime, datetime]:
    """The ends of the time axis of the first chart."""
    found = page.locator("svg.group-chart").first.evaluate("chart => [chart.dataset.start, chart.dataset.end]")
    start, end = (datetime.fromisoformat(each) for each in found)
    return start, end


def box(page: Page) -> FloatRect:
    found = page.locator("svg.group-chart").first.bounding_box()
    assert found
    return found


def drag(page: Page, first: float, last: float, *, release: bool = True) -> None:
    """Drag over the chart between two shares of its time axis."""
    left, right = page.locator("svg.group-chart").first.evaluate("""chart => {
      const box = chart.getBoundingClientRect(), scale = box.width / chart.viewBox.baseVal.width;
      return [box.left + scale * chart.dataset.left, box.left + scale * chart.dataset.right]; }""")
    y = box(page)["y"] + 40
    page.mouse.move(left + first * (right - left), y)
    page.mouse.down()
    page.mouse.move(left + (first + last) / 2 * (right - left), y)
    page.mouse.move(left + last * (right - left), y)
    if release:
        page.mouse.up()


def expect_span(page: Page, start: datetime, end: datetime, near: timedelta) -> None:
    """The page has the span, rounded up to minutes."""
    shown_start, shown_end = ends(page)
    assert abs(shown_end - end) <= near
    assert -near <= start - shown_start <= near + timedelta(minutes=1)


@pytest.mark.parametrize(("first", "last"), [(0.25, 0.5), (0.9, 0.6)])
def test_a_drag_opens_the_span(browser: Browser, server: Dashboard, first: float, last: float) -> None:
    with opened(browser, View(), server.url + GROUP) as visit:
        page = visit.page
        start, end = ends(page)
        drag(page, first, last)
        page.wait_for_url("**as_of=**")
        lower, upper = sorted((first, last))
        # a pixel of the chart is 20 s
        expect_span(page, start + lower * (end - start), start + upper * (end - start), timedelta(seconds=60))
        asked = parse_qs(urlsplit(page.url).query)
        assert asked["span"][0].endswith("m")
        page.go_back()
        assert ends(page) == (start, end)
        assert visit.errors == []


def test_escape_leaves_the_selection(browser: Browser, server: Dashboard) -> None:
    with opened(browser, View(), server.url + GROUP) as visit:
        page, url = visit.page, visit.page.url
        drag(page, 0.3, 0.6, release=False)
        selected = page.locator("[data-live=chart] .selected")
        expect(selected).to_be_visible()
        expect(page.locator("[data-live=chart] .readout")).to_contain_text("open this span")
        page.keyboard.press("Escape")
        expect(selected).to_be_hidden()
        page.mouse.up()
        # neither the release nor the click that follows it opened another page
        page.wait_for_timeout(300)
        assert page.url == url
        # a click opens a time, as before
        page.mouse.down()
        page.mouse.up()
        page.wait_for_url("**as_of=**")
        assert parse_qs(urlsplit(page.url).query)["span"] == ["6h"]


def test_keys_select_a_span(browser: Browser, server: Dashboard) -> None:
    with opened(browser, View(), server.url + GROUP) as visit:
        page = visit.page
        page.get_by_role("region", name="Chart of").focus()
        page.keyboard.press("ArrowLeft")
        for _ in range(3):
            page.keyboard.press("Shift+ArrowLeft")
        times = page.locator("[data-live=chart] .readout strong").inner_text().removesuffix(" UTC").split(" – ")
        start, end = (datetime.fromisoformat(f"{each}Z") for each in times)
        assert start < end
        page.keyboard.press("Enter")
        page.wait_for_url("**as_of=**")
        expect_span(page, start, end, timedelta(seconds=1))
        assert visit.errors == []


def test_a_finger_scrolls_and_selects_nothing(browser: Browser, server: Dashboard) -> None:
    with opened(browser, View(width=PHONE), server.url + GROUP) as visit:
        page, url = visit.page, visit.page.url
        chart = page.locator("svg.group-chart").first
        assert chart.evaluate("chart => getComputedStyle(chart).touchAction") == "auto"
        place = box(page)
        touch = {"pointerType": "touch", "bubbles": True, "button": 0, "clientY": place["y"] + 40}
        x = place["x"] + place["width"]
        chart.dispatch_event("pointerdown", {**touch, "clientX": x - 40})
        chart.dispatch_event("pointermove", {**touch, "clientX": x - 120})
        chart.dispatch_event("pointerup", {**touch, "clientX": x - 120})
        expect(page.locator("[data-live=chart] .selected")).to_be_hidden()
        assert page.url == url
        assert visit.errors == []
