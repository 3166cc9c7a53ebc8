"""Every page of the dashboard keeps the rules for pages, for every reader.

Tests marked slow open every page in every view. The others open each page in the widest view, to which all rules but one apply,
and in two of the other views, another pair of them on each page: pages share style and parts, so what breaks a rule in one view
mostly does so on several pages.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import httpx
import pytest
from browser_pages import View, Window
from dashboards import Dashboard, dashboard
from page_rules import RULES, VIEWS, duplicate_titles, findings
from page_tables import CLUSTER
from patience import PATIENCE_SECONDS

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


#: Pages of a server of two clusters.
OF_TWO_CLUSTERS = ("/", "/c/mirror/groups")

_WIDEST, *_OTHERS = VIEWS
_PAIRS = list(combinations(_OTHERS, 2))
_PAGES = [*PATHS, *VARIANTS, *OF_TWO_CLUSTERS]

#: Returns the views in which a page is opened.
Views = Callable[[str], Sequence[View]]


def three_views(path: str) -> Sequence[View]:
    """The widest view, and two of the others."""
    return (_WIDEST, *_PAIRS[_PAGES.index(path) % len(_PAIRS)])


def every_view(_: str) -> Sequence[View]:
    """All of them."""
    return VIEWS


_in_views = pytest.mark.parametrize("views", [three_views, pytest.param(every_view, marks=pytest.mark.slow)])


def check(window: Window, url: str, status: int, views: Sequence[View]) -> None:
    """Fail with what breaks the rules, and the views in which it does."""
    found: dict[str, list[str]] = defaultdict(list)
    for view in views:
        with window.opened(view, url, status) as visit:
            for finding in findings(visit):
                found[finding].append(str(view))
    if found:
        pytest.fail("\n".join(f"{finding} ({', '.join(where)})" for finding, where in found.items()), pytrace=False)


@pytest.fixture(scope="module")
def two_clusters(page_tables: str) -> Iterator[Dashboard]:
    """A server of two clusters, so that it has a page of clusters and a choice between them."""
    with dashboard(page_tables, f"mirror={page_tables.partition('=')[2]}") as running:
        yield running


@pytest.mark.long
@_in_views
@pytest.mark.parametrize(("path", "status"), [*PATHS.items(), *((path, 200) for path in VARIANTS)])
def test_a_page_keeps_the_rules(window: Window, server: Dashboard, path: str, status: int, views: Views) -> None:
    check(window, server.url + path, status, views(path))


@pytest.mark.long
@_in_views
@pytest.mark.parametrize("path", OF_TWO_CLUSTERS)
def test_pages_of_two_clusters_keep_the_rules(window: Window, two_clusters: Dashboard, path: str, views: Views) -> None:
    check(window, two_clusters.url + path, 200, views(path))


def test_three_views_of_each_page_cover_every_pair_of_views() -> None:
    together = [set(three_views(path)) for path in _PAGES]
    assert all(any(pair <= views for views in together) for pair in map(set, combinations(VIEWS, 2)))
    assert [name for name, rule in RULES.items() if _WIDEST not in rule.views] == ["motion"]


@pytest.mark.long
def test_titles_are_unique_and_links_lead_to_pages(window: Window, server: Dashboard) -> None:
    titles, links = [], set()
    for path, status in PATHS.items():
        with window.opened(View(), server.url + path, status) as visit:
            titles.append(visit.page.title())
            links |= set(visit.page.eval_on_selector_all("a[href]", "links => links.map((each) => each.href.split('#')[0])"))
    assert duplicate_titles(titles) == []
    assert links
    with httpx.Client(follow_redirects=True, timeout=PATIENCE_SECONDS) as client:
        statuses = {link: client.get(link).status_code for link in sorted(links) if link.startswith(server.url)}
    refused = {f"{server.url}{path}": status for path, status in PATHS.items() if status != 200}
    assert {link: status for link, status in statuses.items() if status != refused.get(link, 200)} == {}
