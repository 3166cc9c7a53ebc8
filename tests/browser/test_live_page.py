"""A page in a browser while its tables get new batches, and ways through time by pointer, keyboard and without JavaScript."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from browser_pages import DESKTOP, PHONE, View, Visit, Window, opened
from dashboards import Dashboard, configuration_file, dashboard
from eventually import equal_to, eventually
from log_builder import member
from playwright.sync_api import Browser, Page, Request, expect
from status_story import Story

from pipelines.query.engine import Snapshot

pytestmark = [pytest.mark.browser, pytest.mark.long]

OVERVIEW, GROUPS, GROUP = "/c/east/", "/c/east/groups", "/c/east/groups/billing"
#: Longer than the page waits for further batches.
_QUIET_MS = 1_500

Open = Callable[..., AbstractContextManager[Visit]]


class Feed:
    """Tables that get batches, and a server that follows them."""

    def __init__(self, root: Path) -> None:
        self.story = Story(str(root))
        self.seconds, self.position = 0, 0
        self.story.log.group([member()], group="billing")
        for group in ("audit", "mirror"):
            self.story.commit(3, group=group)
        for _ in range(3):
            self.batch(1_200)

    def batch(self, seconds: int = 60) -> None:
        """Some time later, billing has committed less than was appended."""
        self.seconds += seconds
        self.position += 10
        self.story.at(self.seconds).end(self.position + self.lag).commit(self.position).sample()

    @property
    def lag(self) -> int:
        """Lag of billing on orders-0."""
        return self.position + 3


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    return Feed(tmp_path_factory.mktemp("live") / "east")


@pytest.fixture(scope="module")
def following(feed: Feed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A server that looks for new batches 20 times a second."""
    conf = configuration_file(tmp_path_factory.mktemp("conf"), {"dashboard": "poll_ms = 50"})
    with dashboard(f"east={feed.story.root}", conf=conf) as running:
        yield running


@pytest.fixture
def visited(window: Window, feed: Feed, following: Dashboard) -> Open:
    """Opens a page of the server once that has the newest batch."""

    def visit(path: str, view: View | None = None) -> AbstractContextManager[Visit]:
        newest = Snapshot.open(feed.story.root).batch.batch_id
        eventually("the server has the newest batch", lambda: loaded_batch(following), equal_to(newest))
        return window.opened(view or View(), following.url + path)

    return visit


def wait_for_update(page: Page, feed: Feed) -> None:
    """Add a batch and wait until the page has it."""
    before = page.locator("footer p").first.inner_text()
    feed.batch()
    expect(page.locator("footer p").first).not_to_have_text(re.compile(re.escape(before)))


def query(page: Page) -> dict[str, str]:
    """Parameters of the address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def as_of(page: Page) -> datetime:
    """The time in the address."""
    at = datetime.fromisoformat(query(page)["as_of"])
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def loaded_batch(server: Dashboard) -> int:
    """The newest batch that the server shows."""
    return int(server.get("/ready").json()["clusters"]["east"]["batch_id"])


def _add_stream(found: list[str], request: Request) -> None:
    if "/events" in request.url:
        found.append(request.url)


def has_focus(page: Page, selector: str) -> bool:
    return bool(page.evaluate("(selector) => document.activeElement?.matches(selector) ?? false", selector))


@pytest.mark.parametrize("focused", ["#events + .events a", ".tabs a >> nth=2", "#as-of"])
def test_a_batch_moves_neither_focus_nor_scroll(visited: Open, feed: Feed, focused: str) -> None:
    with visited(GROUP, View(width=PHONE)) as visit:
        page = visit.page
        target = page.locator(focused).first
        target.focus()
        target.evaluate("(element) => { window.__focused = element; scrollTo(0, 500); }")
        top = target.evaluate("(element) => element.getBoundingClientRect().top")
        assert page.evaluate("scrollY") > 0
        wait_for_update(page, feed)
        expect(page.locator("[data-live=figures] dd").first).to_contain_text(f"{feed.lag} records")
        assert page.evaluate("document.activeElement === window.__focused && window.__focused.isConnected")
        assert abs(target.evaluate("(element) => element.getBoundingClientRect().top") - top) <= 1
        assert visit.errors == []


def test_the_footer_keeps_the_focus(visited: Open, feed: Feed) -> None:
    with visited(GROUP) as visit:
        visit.page.locator("footer p a").first.focus()
        visit.page.evaluate("window.__focused = document.activeElement")
        wait_for_update(visit.page, feed)
        assert visit.page.evaluate("document.activeElement === window.__focused && window.__focused.isConnected")


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_a_partition_that_falls_behind_does_not_move_what_is_below(visited: Open, feed: Feed, width: int) -> None:
    topic = f"of-{width}"
    feed.story.commit(5, group="audit", topic=topic).end(5, topic=topic)
    feed.batch()
    with visited("/c/east/groups/audit", View(width=width)) as visit:
        page = visit.page
        part = page.locator("[data-live=partitions]")
        rows, height = part.locator(".names li"), part.evaluate("(element) => element.offsetHeight")
        shown = rows.count()
        expect(rows.filter(has_text=f"{topic}-0")).to_have_count(1)
        feed.story.end(5 + 7_000 * width, topic=topic)
        wait_for_update(page, feed)
        most = f"{7_000 * width:,} records at most, on {topic}-0"
        expect(part.locator(".summary")).to_contain_text(most)
        assert rows.count() == shown
        assert part.evaluate("(element) => element.offsetHeight") == height


def test_a_part_that_a_page_no_longer_has_is_hidden_in_its_place(visited: Open, feed: Feed) -> None:
    with visited(GROUP) as visit:
        page = visit.page
        below = page.locator("#events").evaluate("(element) => element.offsetTop")
        # updates are of another page, without this part
        page.evaluate("(path) => history.replaceState(null, '', path)", GROUPS)
        wait_for_update(page, feed)
        expect(page.locator("[data-live=partitions]")).to_be_hidden()
        assert page.locator("#events").evaluate("(element) => element.offsetTop") == below
        page.evaluate("(path) => history.replaceState(null, '', path)", GROUP)
        wait_for_update(page, feed)
        expect(page.locator("[data-live=partitions]")).to_be_visible()


def test_a_list_takes_the_place_of_the_sentence_that_there_is_none(visited: Open, feed: Feed) -> None:
    with visited(f"{GROUPS}?q=nothing") as visit:
        page = visit.page
        expect(page.locator("p[data-live=groups]")).to_contain_text("No group matches")
        page.evaluate("(path) => history.replaceState(null, '', path)", GROUPS)
        wait_for_update(page, feed)
        expect(page.locator("[data-live=groups] tbody th").first).to_be_visible()
        assert visit.errors == []


def test_an_update_is_announced_politely(visited: Open, feed: Feed) -> None:
    with visited(GROUP) as visit:
        line = visit.page.locator("#updated")
        expect(line).to_have_attribute("aria-live", "polite")
        expect(line).to_be_empty()
        wait_for_update(visit.page, feed)
        expect(line).to_have_text(re.compile(r"^Updated at 2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d: \d+ parts? changed\.$"))
        shown = visit.page.locator("#as-of").input_value()
        assert shown in line.inner_text()


def test_pause_stops_updates(visited: Open, following: Dashboard, feed: Feed) -> None:
    with visited(OVERVIEW) as visit:
        page, button = visit.page, visit.page.get_by_role("button", name="live")
        expect(button).to_have_attribute("aria-pressed", "true")
        button.click()
        paused = page.get_by_role("button", name="paused")
        expect(paused).to_have_attribute("aria-pressed", "false")
        before = page.locator("footer p").first.inner_text()
        loaded = loaded_batch(following)
        feed.batch()
        eventually("the batch is loaded", lambda: loaded_batch(following), lambda batch: batch > loaded)
        page.wait_for_timeout(_QUIET_MS)
        assert page.locator("footer p").first.inner_text() == before
        paused.click()
        expect(page.locator("footer p").first).not_to_have_text(re.compile(re.escape(before)))


def test_opened_details_remain_open(visited: Open, feed: Feed) -> None:
    with visited(GROUP) as visit:
        page = visit.page
        chart = page.locator("[data-live=chart]")
        chart.get_by_text("Show as table").click()
        expect(chart.locator("tbody tr").first).to_be_visible()
        summary, shown = page.locator("figcaption").first, feed.lag
        expect(summary).to_contain_text(f"{shown} at the end")
        page.evaluate("window.__details = document.querySelector('figure details')")
        wait_for_update(page, feed)
        assert page.evaluate("window.__details.open && window.__details.isConnected")
        expect(summary).to_contain_text(f"{shown} at the end")
        chart.get_by_text("Show as table").click()
        page.locator("h1").click()
        wait_for_update(page, feed)
        expect(summary).to_contain_text(f"{feed.lag} at the end")


def test_only_the_newest_time_follows_batches(browser: Browser, following: Dashboard, feed: Feed) -> None:
    past = (feed.story.clock() - timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%SZ")
    streams = []
    for path in (GROUP, f"{GROUP}?as_of={past}"):
        with opened(browser, View(), "about:blank") as visit:
            page, found = visit.page, list[str]()
            page.on("request", partial(_add_stream, found))
            page.goto(following.url + path)
            page.wait_for_timeout(300)
            streams.append(len(found))
            expect(page.locator("#live")).to_have_text("to live" if "as_of" in path else "live")
    assert streams == [1, 0]


def test_a_chart_after_an_update_has_one_cursor(visited: Open, feed: Feed) -> None:
    with visited(GROUP) as visit:
        wait_for_update(visit.page, feed)
        visit.page.locator(".group-chart").hover(position={"x": 600, "y": 40})
        readout = visit.page.locator("[data-live=chart] .readout")
        expect(readout).to_have_count(1)
        expect(readout.locator("strong")).to_contain_text(" UTC")


def test_a_chart_says_its_values_to_pointer_keys_and_finger(visited: Open, feed: Feed) -> None:
    with visited(GROUP) as visit:
        readout, chart = visit.page.locator("[data-live=chart] .readout"), visit.page.locator(".group-chart")
        at_now = re.compile(rf"lag{feed.lag:,} records")
        chart.hover(position={"x": 1100, "y": 40})
        expect(readout).to_contain_text(re.compile(r"lag[\d,]+ records"))
        expect(readout).to_contain_text("commits")
        visit.page.mouse.move(0, 0)
        expect(readout).to_be_hidden()
        visit.page.get_by_role("region", name="Chart of").focus()
        visit.page.keyboard.press("ArrowRight")
        expect(readout).to_contain_text(at_now)
        now = readout.locator("strong").inner_text()
        visit.page.keyboard.press("ArrowLeft")
        expect(readout.locator("strong")).not_to_have_text(now)
        visit.page.keyboard.press("Escape")
        expect(readout).to_be_hidden()
        # a finger reads first; a link goes to the time
        url = visit.page.url
        place = chart.bounding_box()
        assert place
        touch = {"pointerType": "touch", "bubbles": True, "clientX": place["x"] + place["width"] - 20, "clientY": place["y"] + 40}
        chart.dispatch_event("pointerdown", touch)
        chart.dispatch_event("click", touch)
        expect(readout.get_by_role("link", name="Go to this time")).to_be_visible()
        assert visit.page.url == url


def test_a_chart_opens_at_now_on_a_phone(visited: Open) -> None:
    with visited(GROUP, View(width=PHONE, javascript=False)) as visit:
        window = visit.page.evaluate("innerWidth")
        for part in (".group-chart .now", ".group-chart .lag .name"):
            box = visit.page.locator(part).bounding_box()
            assert box
            assert 0 <= box["x"] <= window


@pytest.mark.parametrize("path", [OVERVIEW, GROUPS, GROUP])
def test_everything_is_there_without_javascript(visited: Open, path: str) -> None:
    texts = []
    for view in (View(), View(javascript=False)):
        with visited(path, view) as visit:
            expect(visit.page.locator("#slider")).to_be_visible(visible=view.javascript)
            expect(visit.page.locator("#live")).to_be_visible(visible=view.javascript)
            texts.append(visit.page.locator("main").evaluate("(main) => main.textContent.replace(/\\s+/g, ' ').trim()"))
            visit.page.locator("#as-of").fill("2000-01-01 00:00:00")
    assert texts[0] == texts[1]


def test_time_moves_without_javascript(visited: Open, feed: Feed) -> None:
    with visited(GROUP, View(javascript=False)) as visit:
        page = visit.page
        at = (feed.story.clock() - timedelta(seconds=60)).strftime("%Y-%m-%d %H:%M:%S")
        page.locator("#as-of").fill(at)
        page.locator("#as-of").press("Enter")
        page.wait_for_url("**as_of=**")
        assert query(page)["as_of"] == at
        expect(page.locator("#as-of")).to_have_value(at)
        page.get_by_text("to live").click()
        page.wait_for_url(lambda url: "as_of" not in url)
        chart = page.locator("[data-live=chart]")
        chart.get_by_text("Show as table").click()
        expect(chart.locator("tbody tr").first).to_be_visible()


def test_the_slider_opens_the_time_at_which_it_is_released(visited: Open) -> None:
    with visited(GROUP) as visit:
        page, slider = visit.page, visit.page.locator("#slider input")
        first = datetime.fromtimestamp(int(slider.get_attribute("min") or ""), UTC)
        slider.focus()
        page.keyboard.press("End")
        # an arrow key moves by a sample, without a page for each
        for _ in range(2):
            before = int(slider.input_value())
            page.keyboard.press("ArrowLeft")
            assert int(slider.input_value()) == before - int(slider.get_attribute("data-step") or "")
        assert "as_of" not in page.url
        page.keyboard.press("Enter")
        page.wait_for_url("**as_of=**")
        assert as_of(page) > first
        expect(page.locator("#live")).to_have_text("to live")
        newest = page.locator("#slider input").get_attribute("max")
        page.locator("#slider input").focus()
        page.keyboard.press("End")
        page.wait_for_url(lambda url: "as_of" not in url)
        assert page.locator("#slider input").get_attribute("max") == newest


def test_a_drag_shows_the_time_before_it_opens(visited: Open) -> None:
    with visited(GROUPS) as visit:
        page, slider = visit.page, visit.page.locator("#slider input")
        box = slider.bounding_box()
        assert box
        page.mouse.move(box["x"] + box["width"] - 6, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + box["height"] / 2)
        shown = page.locator("#as-of").input_value()
        assert slider.get_attribute("aria-valuetext") == shown
        assert "as_of" not in page.url
        page.mouse.up()
        page.wait_for_url("**as_of=**")
        assert query(page)["as_of"] == shown


def test_links_step_through_time_and_keep_the_page(visited: Open) -> None:
    with visited(f"{GROUP}?tab=members&span=1h") as visit:
        page = visit.page
        now = datetime.fromisoformat(page.locator("#as-of").input_value()).replace(tzinfo=UTC)
        assert page.locator("#earlier").get_attribute("aria-label") == "5 min earlier"
        page.locator("#earlier").click()
        page.wait_for_url("**as_of=**")
        # the newest time of the field is rounded up
        assert timedelta(minutes=5) <= now - as_of(page) <= timedelta(minutes=5, seconds=1)
        assert {name: query(page)[name] for name in ("tab", "span")} == {"tab": "members", "span": "1h"}
        page.locator("#later").click()
        page.wait_for_url(lambda url: "as_of" not in url or as_of(page) > now - timedelta(minutes=1))


def test_a_click_on_the_chart_opens_its_time(visited: Open) -> None:
    with visited(f"{GROUP}?span=1h") as visit:
        page, chart = visit.page, visit.page.locator(".group-chart")
        start, end, left, right = (chart.get_attribute(f"data-{name}") or "" for name in ("start", "end", "left", "right"))
        span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
        share = 0.985
        box = chart.bounding_box()
        assert box
        width = float((chart.get_attribute("viewBox") or "").split()[2])
        place = (float(left) + share * (float(right) - float(left))) / width * box["width"]
        chart.click(position={"x": place, "y": 40})
        page.wait_for_url("**as_of=**")
        expected = datetime.fromisoformat(start) + share * span
        assert abs(as_of(page) - expected) <= span / 500
        assert query(page)["span"] == "1h"


def test_keys_move_through_rows_pages_and_time(visited: Open) -> None:
    with visited(f"{GROUPS}?span=24h") as visit:
        page = visit.page
        page.keyboard.press("/")
        assert has_focus(page, "#search")
        page.keyboard.type("j")
        assert page.locator("#search").input_value() == "j"
        page.locator("#search").evaluate("(field) => field.blur()")
        names = page.locator("tbody th a")
        for key, row in (("j", 0), ("j", 1), ("k", 0), ("k", 0)):
            page.keyboard.press(key)
            expect(names.nth(row)).to_be_focused()
        chosen = names.first.inner_text()
        page.keyboard.press("Enter")
        page.wait_for_url("**/groups/*")
        expect(page.locator("h1")).to_have_text(chosen)
        page.keyboard.press("[")
        page.wait_for_url("**as_of=**")
        # a step of 2 h is longer than the history, so this is its first time
        expect(page.locator("#earlier")).to_have_count(0)
        page.keyboard.press("]")
        page.wait_for_url(lambda url: "as_of" not in url)
        for key, heading in (("g", "Groups"), ("t", "Topics"), ("a", "Alerts"), ("l", "Offsets topic"), ("c", "Clients")):
            page.keyboard.press("g")
            page.keyboard.press(key)
            expect(page.locator("h1")).to_have_text(heading)
        page.keyboard.press("g")
        page.keyboard.press("o")
        page.wait_for_url(f"**{OVERVIEW}?span=24h")
        assert visit.errors == []


def test_shortcuts_can_be_switched_off(visited: Open) -> None:
    with visited(GROUPS) as visit:
        page = visit.page
        page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
        expect(dialog).to_be_visible()
        # no shortcut while the list is open, and no second list
        page.keyboard.press("?")
        page.keyboard.press("/")
        assert not has_focus(page, "#search")
        dialog.get_by_role("checkbox").uncheck()
        dialog.get_by_role("button", name="Close").click()
        for key in ("/", "j", "?"):
            page.keyboard.press(key)
        assert not has_focus(page, "#search, tbody a")
        expect(dialog).to_be_hidden()
        page.reload()
        page.keyboard.press("/")
        assert not has_focus(page, "#search")
        page.get_by_role("button", name="Keyboard shortcuts").click()
        dialog.get_by_role("checkbox").check()
        page.keyboard.press("Escape")
        page.keyboard.press("/")
        assert has_focus(page, "#search")
        assert visit.errors == []
