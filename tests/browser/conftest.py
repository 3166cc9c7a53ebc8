"""One server of the dashboard for the run, and a browser for each module."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from browser_pages import Window, launched
from dashboards import Dashboard, dashboard
from page_tables import CLUSTER
from patience import BROWSER_SECONDS
from playwright.sync_api import Browser, expect
from shop_day import day_tables

# `expect` has a limit of its own, which `set_default_timeout` of a page does not change
expect.set_options(timeout=BROWSER_SECONDS * 1000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser without a window. Playwright keeps an event loop in the thread, in which later modules could not run theirs."""
    with launched() as running:
        yield running


@pytest.fixture(scope="module")
def window(browser: Browser) -> Iterator[Window]:
    """A window of that browser."""
    with closing(Window(browser)) as made:
        yield made


@pytest.fixture(scope="session")
def page_tables() -> str:
    """The tables of the pages, as `NAME=DIR`."""
    return f"{CLUSTER}={day_tables()}"


@pytest.fixture(scope="session")
def server(page_tables: str) -> Iterator[Dashboard]:
    """`grouplake dashboard` of these tables."""
    with dashboard(page_tables) as running:
        yield running
