"""The page of queries: an example, a query with a chart, an error, by readers of every kind."""

from collections.abc import Iterator

import pytest
from browser_pages import NARROW, View, Window
from dashboards import Dashboard, configuration_file, dashboard
from page_rules import findings
from page_tables import CLUSTER
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

PAGE = f"/c/{CLUSTER}/sql"
LAG = "SELECT sampled_at, sum(lag) AS records FROM lag_history GROUP BY sampled_at ORDER BY sampled_at"
BY_GROUP = "SELECT sampled_at, group_id, sum(lag) AS lag FROM lag_history GROUP BY sampled_at, group_id"


@pytest.fixture(scope="module")
def queried(page_tables: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    section = "sql = true\nsql_seconds = 120  # runs out: on a machine with other work"
    with dashboard(page_tables, conf=configuration_file(tmp_path_factory.mktemp("conf"), {"dashboard": section})) as running:
        yield running


def test_a_query_and_its_chart(window: Window, queried: Dashboard) -> None:
    with window.opened(View(width=NARROW), queried.url + PAGE) as visit:
        page = visit.page
        assert findings(visit) == []
        page.get_by_role("link", name="Groups with the greatest lag").click()
        expect(page.locator("table.result tbody tr").first).to_be_visible()
        expect(page.locator("svg.chart")).to_have_count(0)
        page.locator("textarea").fill(LAG)
        page.locator("textarea").press("Control+Enter")
        expect(page.locator("figcaption")).to_contain_text("records: ")
        assert findings(visit) == []
        page.get_by_role("region", name="records over time").focus()
        page.keyboard.press("ArrowRight")
        shown = page.locator(".readout dd")
        newest = page.locator("table.result tbody tr").last.locator("td").last.inner_text()
        expect(shown).to_have_text(f"{int(newest):,}")


def test_series_and_errors_of_queries(window: Window, queried: Dashboard) -> None:
    with window.opened(View("dark"), f"{queried.url}{PAGE}?q={BY_GROUP}") as visit:
        assert visit.page.locator("svg.chart").count() > 1
        assert findings(visit) == []
    with window.opened(View(), f"{queried.url}{PAGE}?q=SELECT nothing", 400) as visit:
        expect(visit.page.get_by_role("alert")).to_contain_text("query failed")
        assert not visit.page.get_by_role("alert").inner_text().endswith("..")
        expect(visit.page.locator("textarea")).to_have_value("SELECT nothing")
        assert findings(visit) == []
