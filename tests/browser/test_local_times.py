"""Times in the zone of the reader: the server writes UTC, the browser writes what the reader has chosen."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest
from browser_pages import View, opened
from dashboards import Dashboard
from page_tables import CLUSTER
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.browser

#: A zone whose hours are not those of UTC, with another day for a quarter of it.
ZONE, SHIFT = "Asia/Kolkata", timedelta(hours=5, minutes=30)
GROUP = f"/c/{CLUSTER}/groups/billing?span=24h"
#: The text and the meaning of every time: in sentences, cells, and ticks of charts.
_TIMES = """() => [...document.querySelectorAll("time[datetime], [data-at]")].map(each => [
  each.textContent, each.dataset.at ?? each.dateTime])"""


def times(page: Page) -> list[tuple[str, datetime]]:
    return [(text, datetime.fromisoformat(meant)) for text, meant in page.evaluate(_TIMES)]


def field(page: Page) -> datetime:
    return datetime.fromisoformat(page.locator("#as-of").input_value())


def test_times_of_the_reader(browser: Browser, server: Dashboard) -> None:
    with opened(browser, View(timezone=ZONE), server.url + GROUP) as visit:
        page = visit.page
        in_utc, utc = times(page), field(page)
        page.get_by_role("button", name="UTC: show local times").click()
        expect(page.locator(".zone").first).to_have_text("GMT+5:30")
        assert field(page) == utc + SHIFT
        shown = times(page)
        wrong = [(text, at) for text, at in shown if f"{at.astimezone(ZoneInfo(ZONE)):%H:%M}" not in text]
        assert wrong == []
        assert any(text.endswith(" GMT+5:30") for text, _ in shown), "sentences name the zone"
        assert len(shown) == len(in_utc) > 20
        page.locator(".group-chart").hover(position={"x": 600, "y": 40})
        expect(page.locator(".readout strong").first).to_contain_text("GMT+5:30")
        # the choice is kept; addresses are in UTC
        page.reload()
        assert times(page) == shown
        wanted = utc - timedelta(hours=1)
        page.locator("#as-of").fill(f"{wanted + SHIFT:%Y-%m-%d %H:%M:%S}")
        page.locator("#as-of").press("Enter")
        page.wait_for_url("**as_of=**")
        asked = parse_qs(urlsplit(page.url).query)["as_of"][0]
        assert datetime.fromisoformat(asked) == wanted.replace(tzinfo=UTC)
        assert field(page) == wanted + SHIFT
        page.get_by_text("to live").click()
        page.get_by_role("button", name="GMT+5:30: show UTC").click()
        assert times(page) == in_utc
        assert visit.errors == []
