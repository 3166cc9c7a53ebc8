"""Every page of the dashboard keeps the rules for pages, for every reader."""

from collections import defaultdict
from collections.abc import Iterator

import httpx
import pytest
from browser_pages import View, Window
from dashboards import Dashboard, dashboard
from page_rules import VIEWS, duplicate_titles, findings
from page_tables import CLUSTER

pytestmark = pytest.mark.browser

_CLUSTER = f"/c/{CLUSTER}"
#: Pages of the cluster, each with a title of its own.
PATHS = {
    f"{_CLUSTER}/": 200,
    f"{_CLUSTER}/groups": 200,
    f"{_CLUSTER}/groups/billing": 200,
    f"{_CLUSTER}/changes": 200,
    f"{_CLUSTER}/topics": 200,
    f"{_CLUSTER}/topics/orders": 200,
    f"{_CLUSTER}/clients": 200,
    f"{_CLUSTER}/clients/billing-1": 200,
    f"{_CLUSTER}/offsets-topic": 200,
    f"{_CLUSTER}/alerts": 200,
    f"{_CLUSTER}/groups/nothing": 404,
    f"{_CLUSTER}/groups?sort=colour": 400,
}
#: The same pages with other rows, at a past time, or without rows.
VARIANTS = (
    f"{_CLUSTER}/groups/billing?tab=members",
    f"{_CLUSTER}/groups/billing?tab=expiry",
    f"{_CLUSTER}/groups/nightly-report?tab=resets&span=24h",
    f"{_CLUSTER}/groups/ledger?tab=transactions",
    f"{_CLUSTER}/groups/search-index?tab=records",
    f"{_CLUSTER}/groups?as_of=2026-03-02T10:02:00Z&sort=-lag",
    f"{_CLUSTER}/groups?q=nothing",
)


def check(window: Window, url: str, status: int) -> None:
    """Fail with what breaks the rules, and the views in which it does."""
    found: dict[str, list[str]] = defaultdict(list)
    for view in VIEWS:
        with window.opened(view, url, status) as visit:
            for finding in findings(visit):
                found[finding].append(str(view))
    if found:
        pytest.fail("\n".join(f"{finding} ({', '.join(views)})" for finding, views in found.items()), pytrace=False)


@pytest.fixture(scope="module")
def two_clusters(page_tables: str) -> Iterator[Dashboard]:
    """A server of two clusters, so that it has a page of clusters and a choice between them."""
    with dashboard(page_tables, f"mirror={page_tables.partition('=')[2]}") as running:
        yield running


@pytest.mark.long
@pytest.mark.parametrize(("path", "status"), [*PATHS.items(), *((path, 200) for path in VARIANTS)])
def test_a_page_keeps_the_rules(window: Window, server: Dashboard, path: str, status: int) -> None:
    check(window, server.url + path, status)


@pytest.mark.long
@pytest.mark.parametrize("path", ["/", "/c/mirror/groups"])
def test_pages_of_two_clusters_keep_the_rules(window: Window, two_clusters: Dashboard, path: str) -> None:
    check(window, two_clusters.url + path, 200)


@pytest.mark.long
def test_titles_are_unique_and_links_lead_to_pages(window: Window, server: Dashboard) -> None:
    titles, links = [], set()
    for path, status in PATHS.items():
        with window.opened(View(), server.url + path, status) as visit:
            titles.append(visit.page.title())
            links |= set(visit.page.eval_on_selector_all("a[href]", "links => links.map((each) => each.href.split('#')[0])"))
    assert duplicate_titles(titles) == []
    assert links
    with httpx.Client(follow_redirects=True, timeout=60) as client:
        statuses = {link: client.get(link).status_code for link in sorted(links) if link.startswith(server.url)}
    refused = {f"{server.url}{path}": status for path, status in PATHS.items() if status != 200}
    assert {link: status for link, status in statuses.items() if status != refused.get(link, 200)} == {}
