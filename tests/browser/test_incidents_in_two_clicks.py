"""Eight incidents are found from the overview in at most two clicks and ten seconds, by what a reader sees.

The script reads the visible text of a page and follows links by their text. It knows what a person on call has heard: the name
of a group, and for what is over also the day. It states what happened, since when, who is involved, and the next step.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import on_call_incidents
import pytest
from browser_pages import View, Window
from dashboards import Dashboard, dashboard
from on_call_incidents import write_on_call_tables
from playwright.sync_api import Page
from shop_history import shop_tables

#: The first test builds the tables, which takes minutes beside other work, and a busy machine may miss the ten seconds.
pytestmark = [pytest.mark.browser, pytest.mark.slow]

MOST_CLICKS, MOST_SECONDS, TRIES = 2, 10, 3


@dataclass(frozen=True)
class PlantedCase:
    """What was heard, and what was planted: expressions of texts that the page has to show.

    `over`: the incident has ended, and this word is in the event that the reader would look at.
    """

    group: str
    what: str
    since: str
    who: str
    next_step: str
    cluster: str = "shop"
    day: str = ""
    over: str = ""

    def __str__(self) -> str:
        return self.group


TUTORIAL = (
    PlantedCase(
        "billing", "No commits on orders-3", "since 10:49 UTC", "billing-1 on 10.42.4.11 owns it", "threads of billing-1"
    ),
    PlantedCase(
        *("search-indexer", "rebalances within 19 min 15 s", r"05:19:15|since 05:0\d UTC", "search-indexer-3 left or timed out"),
        *("Look for members that join and leave",),
        over="rebalances",
    ),
    PlantedCase(
        *("recommendations", "Reset of 6 partitions of clicks", "12:00:00", "by an administrator", "Look for a reset"),
        day="2026-03-03T14:00:00Z",
    ),
    PlantedCase(
        *("report-monthly", "Offsets of 2 partitions of invoices were removed", "08:04:00", "the group skipped them"),
        *("stop its members and reset its offsets",),
    ),
)
ON_CALL = (
    PlantedCase(
        *(
            "fulfilment",
            "No commits on orders-37",
            "since 11:18 UTC",
            "fulfilment-4 on 10.7.0.4 owns it",
            "threads of fulfilment-4",
        ),
        cluster=on_call_incidents.CLUSTER,
    ),
    PlantedCase(
        *(
            "mailer",
            "No commits on 3 partitions",
            "since 11:19 UTC",
            "mailer-1 left or timed out",
            "Start a consumer of the group",
        ),
        cluster=on_call_incidents.CLUSTER,
    ),
    PlantedCase(
        *("page-counts", "are on page-views-2, one of 6 partitions", "since 11:06 UTC", "page-counts-2 on 10.7.0.4 owns it"),
        *("Look for a key that many records have",),
        cluster=on_call_incidents.CLUSTER,
    ),
    PlantedCase(
        *("nightly-report", "The committed offset of reports-0 will expire at 17:06 UTC", "since 11 Nov, 17:06 UTC"),
        *("the group has had no members", "Start a consumer of the group"),
        cluster=on_call_incidents.CLUSTER,
    ),
)


@pytest.fixture(scope="module")
def incidents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """One server of both clusters."""
    on_call = write_on_call_tables(str(tmp_path_factory.mktemp("on_call") / "tables"))
    with dashboard(f"shop={shop_tables()}", on_call) as running:
        yield running


def visible_text(page: Page) -> str:
    return page.locator("body").inner_text()


def missing(planted: PlantedCase, read: str) -> list[str]:
    """What the texts that were read do not state."""
    wanted = {"what": planted.what, "since": planted.since, "who": planted.who, "next": planted.next_step}
    return [name for name, expression in wanted.items() if not re.search(expression, read)]


def read_pages(page: Page, planted: PlantedCase) -> tuple[str, int]:
    """The visible texts of the pages after the overview, and the number of links that were followed."""
    page.get_by_role("link", name=planted.group, exact=True).first.click()
    page.wait_for_url(f"**/groups/{planted.group}**")
    read = visible_text(page)
    if not planted.over:
        return read, 1
    # the first event of that word; its time is the link
    line = page.get_by_role("listitem").filter(has_text=planted.over).filter(has=page.get_by_role("link")).last
    line.get_by_role("link").first.click()
    page.wait_for_url("**as_of=**")
    return f"{read}\n{visible_text(page)}", 2


@pytest.mark.parametrize("planted", [*TUTORIAL, *ON_CALL], ids=str)
def test_an_incident_is_found(window: Window, incidents: Dashboard, planted: PlantedCase) -> None:
    # other programs of the machine may slow one try down
    seconds = [found_within(window, incidents, planted)]
    while min(seconds) > MOST_SECONDS and len(seconds) < TRIES:
        seconds.append(found_within(window, incidents, planted))
    assert min(seconds) <= MOST_SECONDS


def found_within(window: Window, incidents: Dashboard, planted: PlantedCase) -> float:
    """Find the incident, and return the seconds that it took."""
    query = f"?as_of={planted.day}" if planted.day else ""
    with window.opened(View(), "about:blank") as visit:
        began = time.monotonic()
        visit.page.goto(f"{incidents.url}/c/{planted.cluster}/{query}")
        assert planted.group in visible_text(visit.page)
        read, clicks = read_pages(visit.page, planted)
        seconds = time.monotonic() - began
        assert missing(planted, read) == []
        assert clicks <= MOST_CLICKS
        assert visit.errors == []
    return seconds


def test_the_page_of_a_healthy_group_states_none(window: Window, incidents: Dashboard) -> None:
    with window.opened(View(), f"{incidents.url}/c/shop/groups/warehouse-sync") as visit:
        read = visible_text(visit.page)
    assert all({"what", "who", "next"} <= set(missing(planted, read)) for planted in (*TUTORIAL, *ON_CALL))
