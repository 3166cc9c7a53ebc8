"""Pages stand still while they load: scripts show controls in places that were kept for them."""

import pytest
from browser_pages import DESKTOP, PHONE, View, opened
from dashboards import Dashboard
from layout_shifts import MOST_SHIFT, shift_of
from page_tables import CLUSTER
from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

_PATHS = ("", "groups", "groups/billing", "topics/orders", "clients/billing-1", "offsets-topic", "alerts")


@pytest.mark.parametrize("width", [PHONE, pytest.param(DESKTOP, marks=pytest.mark.slow)])
def test_a_page_stands_still(browser: Browser, server: Dashboard, width: int) -> None:
    shifts = {}
    for path in _PATHS:
        with opened(browser, View(width=width), f"{server.url}/c/{CLUSTER}/{path}") as visit:
            shifts[path] = shift_of(visit.page)
    assert {path: shift for path, shift in shifts.items() if shift > MOST_SHIFT} == {}


def test_a_shift_is_counted(browser: Browser, server: Dashboard) -> None:
    with opened(browser, View(), f"{server.url}/c/{CLUSTER}/groups") as visit:
        before = shift_of(visit.page)
        visit.page.evaluate("document.querySelector('h1').style.marginTop = '400px'")
        assert shift_of(visit.page) > before + MOST_SHIFT
