"""Every page of the dashboard keeps the rules for pages, for every reader."""

from collections import defaultdict

import httpx
import pytest
from browser_pages import View, opened
from dashboards import Dashboard
from page_rules import VIEWS, duplicate_titles, findings
from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

#: Status of each page of the cluster `shop`.
PATHS = {"/": 200}
LIST_OF_LINKS = "the list of links at / has no style yet; the overview of clusters replaces it"


@pytest.mark.xfail(reason=LIST_OF_LINKS, strict=True)
@pytest.mark.parametrize(("path", "status"), PATHS.items())
def test_a_page_keeps_the_rules(browser: Browser, server: Dashboard, path: str, status: int) -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for view in VIEWS:
        with opened(browser, view, server.url + path, status) as visit:
            for finding in findings(visit):
                found[finding].append(str(view))
    if found:
        pytest.fail("\n".join(f"{finding} ({', '.join(views)})" for finding, views in found.items()), pytrace=False)


def test_titles_are_unique_and_links_lead_to_pages(browser: Browser, server: Dashboard) -> None:
    titles, links = [], set()
    for path, status in PATHS.items():
        with opened(browser, View(), server.url + path, status) as visit:
            titles.append(visit.page.title())
            links |= set(visit.page.eval_on_selector_all("a[href]", "links => links.map((each) => each.href.split('#')[0])"))
    assert duplicate_titles(titles) == []
    assert links
    with httpx.Client() as client:
        statuses = {link: client.get(link).status_code for link in sorted(links) if link.startswith(server.url)}
    assert {link: status for link, status in statuses.items() if status != 200} == {}
