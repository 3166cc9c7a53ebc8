"""Pages of groups with many partitions, many members and hostile names, in the narrowest window and in a wide one."""

from collections.abc import Iterator

import pytest
from browser_pages import NARROW, View, Window
from dashboards import Dashboard, dashboard
from page_rules import findings
from page_tables import HOSTILE, MANY_MEMBERS, MANY_PARTITIONS, write_extreme_tables

from pipelines.dashboard.pages.parts.links import Links

pytestmark = pytest.mark.browser

_LINKS = Links("extreme", "/c/extreme/")
_PATHS = {
    "overview": _LINKS.to(),
    "groups": _LINKS.to("groups"),
    "topics": _LINKS.to("topics"),
    "clients": _LINKS.to("clients"),
    "changes": _LINKS.to("changes"),
    "200 partitions": _LINKS.to("groups", "wide"),
    "200 partitions of a topic": _LINKS.to("topics", "orders"),
    "65 members": _LINKS.to("groups", "crowd", tab="members"),
    **{
        f"hostile name {number}": _LINKS.to("groups", name, tab=tab)
        for number, (name, tab) in enumerate(zip(HOSTILE, ("offsets", "members", "expiry", "records", "offsets"), strict=True))
    },
}
_VIEWS = (View(width=NARROW), View("dark"))


@pytest.fixture(scope="module")
def extreme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with dashboard(write_extreme_tables(tmp_path_factory.mktemp("extreme"))) as running:
        yield running


@pytest.mark.long
@pytest.mark.parametrize("name", _PATHS)
def test_an_extreme_page_keeps_the_rules(window: Window, extreme: Dashboard, name: str) -> None:
    found = {}
    for view in _VIEWS:
        with window.opened(view, extreme.url + _PATHS[name]) as visit:
            found[str(view)] = findings(visit)
    assert {view: each for view, each in found.items() if each} == {}


def test_all_partitions_and_members_are_listed(window: Window, extreme: Dashboard) -> None:
    for name, rows in (("200 partitions", MANY_PARTITIONS), ("65 members", MANY_MEMBERS - 20)):
        with window.opened(View(width=NARROW), extreme.url + _PATHS[name]) as visit:
            assert visit.page.locator("#rows tbody tr").count() == rows
