"""Pages of the first hour, and of a job that stopped or was away: each state says what is known, and keeps the rules."""

from collections.abc import Iterator

import pytest
from browser_pages import PHONE, View, Window
from dashboards import Dashboard
from eventually import equal_to, eventually
from first_hour import first_hour_tables
from page_rules import findings
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

#: State → heading of the overview, and a part of the sentence above it; empty for none.
STATES = {
    "empty": ("No groups yet", ""),
    "started": ("1 group", "No sample of log ends yet"),
    "stopped": ("1 group, status unknown", "the job has stopped"),
    "catching_up": ("1 group, status unknown", "The job is catching up: commits are known until"),
    "many": ("20 groups need attention", ""),
}


def loaded_code(server: Dashboard) -> int:
    return server.get("/ready/loaded").status_code


@pytest.fixture(scope="module")
def first_hour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A server with a cluster for each state. It is never ready, since the data of one of them is old."""
    running = Dashboard(*first_hour_tables(tmp_path_factory.mktemp("first_hour"), STATES))
    try:
        eventually("all clusters are loaded", lambda: loaded_code(running), equal_to(200), unless=running.failure)
        yield running
    finally:
        running.close()


@pytest.mark.parametrize("state", STATES)
def test_a_state_says_what_is_known(window: Window, first_hour: Dashboard, state: str) -> None:
    heading, note = STATES[state]
    for view in (View(width=PHONE), View("dark")):
        with window.opened(view, f"{first_hour.url}/c/{state}/") as visit:
            expect(visit.page.locator("h1")).to_have_text(heading)
            expect(visit.page.locator("p.age")).to_contain_text(note)
            expect(visit.page.get_by_role("rowheader").first).to_be_visible(visible=state != "empty")
            assert findings(visit) == []
