"""One browser for the run."""

from collections.abc import Iterator

import pytest
from browser_pages import launched
from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    with launched() as running:
        yield running
