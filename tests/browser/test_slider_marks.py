"""Marks of events on the slider of a group: their words at the pointer, and a way to them by keyboard."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from browser_pages import DESKTOP, PHONE, View, Window
from dashboards import Dashboard, dashboard
from log_builder import member
from playwright.sync_api import Page, expect
from status_story import Story

pytestmark = [pytest.mark.browser, pytest.mark.long]

_REBALANCE_SECONDS, _RESET_SECONDS, _END_SECONDS = 600, 1_200, 2_400
_PATH = "/c/east/groups/billing"


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A server of a group with a rebalance, and a reset of two partitions."""
    story = Story(str(tmp_path_factory.mktemp("marks") / "east"))
    story.at(0).log.group([member()], group="billing")
    story.end(9).end(9, 1).commit(8).commit(8, 1).sample()
    story.at(_REBALANCE_SECONDS).log.group([member()], group="billing", generation=6)
    story.sample()
    story.at(_RESET_SECONDS).commit(2).commit(3, 1)
    # the batch that shows the reset is complete a minute after it
    story.at(_RESET_SECONDS + 60).sample()
    story.at(_END_SECONDS).commit(5).sample()
    with dashboard(f"east={story.root}") as running:
        yield running


def words_at(page: Page, share: float) -> str | None:
    """The words at the pointer at a share of the way of the thumb; None without."""
    box = page.locator("#slider input").bounding_box()
    assert box
    page.mouse.move(box["x"] + 6 + share * (box["width"] - 12), box["y"] + box["height"] / 2)
    readout = page.locator("#slider .readout")
    return readout.inner_text() if readout.is_visible() else None


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_the_pointer_shows_what_happened_at_a_mark(window: Window, eventful: Dashboard, width: int) -> None:
    with window.opened(View(width=width), eventful.url + _PATH) as visit:
        page = visit.page
        first, last = (int(page.locator("#slider input").get_attribute(name) or "") for name in ("min", "max"))
        for at, words in _marks(page):
            shown = words_at(page, (at - first) / (last - first))
            assert shown is not None
            assert words in shown
            # it is a word within the window
            box = page.locator("#slider .readout").bounding_box()
            assert box
            assert 0 <= box["x"] <= box["x"] + box["width"] <= width
        assert words_at(page, 0.75) is None
        assert visit.errors == []


def test_keys_lead_from_event_to_event(window: Window, eventful: Dashboard) -> None:
    with window.opened(View(), eventful.url + _PATH) as visit:
        page, slider = visit.page, visit.page.locator("#slider input")
        marks = _marks(page)
        assert [words for _, words in marks] == ["1 rebalance", "2 offsets went back"]
        slider.focus()
        for key, (at, words) in (("PageDown", marks[1]), ("PageDown", marks[0]), ("PageDown", marks[0]), ("PageUp", marks[1])):
            page.keyboard.press(key)
            assert int(slider.input_value()) == at
            text = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
            assert slider.get_attribute("aria-valuetext") == f"{text}: {words}"
        page.keyboard.press("Enter")
        # the server leads to the first batch that shows the event
        page.wait_for_url(lambda url: "as_of=" in url and "event=" not in url)
        expect(page.locator("[data-live=events] li").first).to_contain_text("Reset of 2 partitions of orders")
        assert visit.errors == []


def _marks(page: Page) -> list[tuple[int, str]]:
    found = page.locator("#slider input").evaluate("slider => JSON.parse(slider.dataset.events)")
    return [(at, words) for at, words in found]
