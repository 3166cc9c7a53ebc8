"""Links to groups, topics and clients whose names a browser or a proxy would change in a path: each opens its own page."""

from collections.abc import Iterator

import pytest
from browser_pages import View, Window
from dashboards import Dashboard, dashboard
from odd_names import ODD_NAMES, PLAIN_NAMES, write_odd_names
from reverse_proxy import normalised_path, reverse_proxy

from pipelines.dashboard.formatting.names import visible

pytestmark = pytest.mark.browser

#: Lists of the page, and the key of the JSON of a page that its links lead to.
_LISTS = {"groups": "group_id", "topics": "topic", "clients": "client"}
_NAMES = (*ODD_NAMES, *PLAIN_NAMES)
_FETCH = "address => fetch(address).then(answer => answer.json())"
#: The headings of the pages that links lead to, and the JSON of these pages. A browser resolves an address as for a click.
_OPENED = """links => Promise.all(links.map(async link => {
  const answer = await fetch(link.href);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const file = [...page.links].find(each => each.textContent === "JSON of this page").getAttribute("href");
  return [page.querySelector("h1").textContent, await (await fetch(new URL(file, answer.url))).json()];
}))"""
#: Names of each kind: empty, of a path, percent-encoded, a character beyond ASCII, a control character, and a plain one.
_CLICKED = ("", "..", "a/b", "50%", "größe 数据", "tab\tnul\x00", "billing")
_SLOW = pytest.mark.slow


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    root = str(tmp_path_factory.mktemp("odd") / "odd")
    write_odd_names(root)
    with dashboard(f"odd={root}") as running:
        yield running


# one list here: the paths of all of them are made by one function, whose results the server reads in `test_pages_of_odd_names.py`
@pytest.mark.parametrize("kind", ["groups", *(pytest.param(kind, marks=_SLOW) for kind in ("topics", "clients"))])
def test_every_link_of_a_list_opens_its_own_page(window: Window, odd: Dashboard, kind: str) -> None:
    with window.opened(View(), f"{odd.url}/c/odd/{kind}") as visit:
        links = visit.page.locator("main tbody th a")
        shown = links.all_text_contents()
        assert sorted(shown) == sorted(map(visible, _NAMES))
        headings, files = zip(*links.evaluate_all(_OPENED), strict=True)
        assert list(headings) == shown
        assert sorted(file[_LISTS[kind]] for file in files) == sorted(_NAMES)
        assert visit.errors == []


@pytest.mark.parametrize(("kind", "names"), [("groups", _CLICKED), *(pytest.param(kind, _NAMES, marks=_SLOW) for kind in _LISTS)])
def test_a_click_on_a_link_of_a_list_opens_its_own_page(
    window: Window, odd: Dashboard, kind: str, names: tuple[str, ...]
) -> None:
    wanted = set(map(visible, names))
    with window.opened(View(), f"{odd.url}/c/odd/{kind}") as visit:
        links = visit.page.locator("main tbody th a")
        clicked = [(number, text) for number, text in enumerate(links.all_text_contents()) if text in wanted]
        found = []
        for number, text in clicked:
            links.nth(number).click()
            assert visit.page.locator("h1").text_content() == text
            file = visit.page.get_by_role("link", name="JSON of this page").get_attribute("href")
            found.append(visit.page.evaluate(_FETCH, file)[_LISTS[kind]])
            visit.page.go_back()
        assert sorted(found) == sorted(names)
        assert visit.errors == []


def test_links_arrive_through_a_proxy_that_normalises_paths(window: Window, odd: Dashboard) -> None:
    # the proxy does not forward streams, which a page without JavaScript does not open
    view = View(javascript=False)
    with (
        reverse_proxy(odd.url, None, forwarded_path=normalised_path) as url,
        window.opened(view, f"{url}/c/odd/groups") as visit,
    ):
        links = visit.page.locator("main tbody th a")
        assert [heading for heading, _ in links.evaluate_all(_OPENED)] == links.all_text_contents()
        assert visit.errors == []


@pytest.mark.parametrize(
    ("segment", "name", "code"), [("a%2Fb", "a/b", "~a~2Fb"), ("report%2Ejson", "report.json", "~report~2Ejson")]
)
def test_a_link_of_an_earlier_version_opens_the_page(window: Window, odd: Dashboard, segment: str, name: str, code: str) -> None:
    with window.opened(View(), f"{odd.url}/c/odd/groups/{segment}?span=6h") as visit:
        assert visit.page.locator("h1").text_content() == name
        assert visit.page.url == f"{odd.url}/c/odd/groups/{code}?span=6h"
        # the redirect is no error
        assert [error for error in visit.errors if not error.endswith(": 308")] == []
