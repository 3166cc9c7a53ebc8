"""The page of a job without a batch, which turns into the page of its tables."""

from http import HTTPStatus
from pathlib import Path

import httpx
import pytest
from browser_pages import PHONE, View, opened
from eventually import equal_to, eventually
from lag_tables import lag_row, write_tables
from page_rules.catalogue import findings
from patience import PATIENCE_SECONDS
from playwright.sync_api import Browser, expect

from pipelines.cli.dashboard_option import dashboard_of_job
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.progress import RecentProgress, no_progress

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.mark.parametrize("view", [View(width=PHONE), View("dark", javascript=False)], ids=str)
def test_progress_and_then_the_page(browser: Browser, view: View, tmp_path: Path) -> None:
    tables, lines = str(tmp_path / "east"), list[str]()
    job = RecentProgress(no_progress)
    with dashboard_of_job("grouplake run", "127.0.0.1:0", tables, load_configuration(None), lines.append, job):
        url = f"{lines[0].removeprefix('dashboard: ')}c/east/"
        with opened(browser, view, url, HTTPStatus.SERVICE_UNAVAILABLE) as visit:
            page = visit.page
            expect(page.get_by_role("heading", name="Waiting for the first batch")).to_be_visible()
            # the page requests itself again until there is a batch
            assert [each for each in findings(visit) if each != f"request failed: {url}: 503"] == []
            job("starting Spark")
            if not view.javascript:
                page.get_by_role("link", name="Try again").click()
            expect(page.get_by_text("starting Spark")).to_be_visible()
            write_tables(tables, lag=[lag_row("billing", "orders", 0, 1, 3)])
            if not view.javascript:
                eventually("the batch is loaded", lambda: httpx.get(url, timeout=PATIENCE_SECONDS).status_code, equal_to(200))
                page.get_by_role("link", name="Try again").click()
            expect(page.get_by_role("link", name="JSON of this page")).to_be_visible()
