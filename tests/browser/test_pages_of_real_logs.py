"""Every page over the logs that real brokers wrote, and of a demo whose members come and go."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import genuine
import pytest
from browser_pages import View, Window
from dashboards import dashboard
from demo_process import demo_with_dashboard
from page_walk import walked

from pipelines.query.engine import Snapshot

pytestmark = [pytest.mark.browser, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1_800)]

_MOST_PAGES = 24
_GENERATIONS = {"0.10.2.2": "0.10", "4.1.1": "4"}


@pytest.fixture(scope="module", params=_GENERATIONS)
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of a log."""
    folder = tmp_path_factory.mktemp("real")
    source = genuine.segments_dir(request.param, folder)
    command = [sys.executable, "-c", "import sys; from pipelines.cli import main; sys.exit(main())", "run"]
    arguments = ["--source", f"segments:{source}", "--tables", str(folder / "tables"), "--era", _GENERATIONS[request.param]]
    subprocess.run([*command, *arguments], check=True, env=os.environ)
    return folder / "tables"


def test_pages_of_a_log(window: Window, tables: Path) -> None:
    with dashboard(f"real={tables}") as server:
        found = dict(walked(window, f"{server.url}/c/real/", _MOST_PAGES))
        with window.opened(View(), f"{server.url}/c/real/groups?sort=group") as visit:
            listed = visit.page.locator("table.groups tbody th a").all_inner_texts()
            lags = visit.page.locator("table.groups tbody td[data-label=lag]").all_inner_texts()
    assert {page: findings for page, findings in found.items() if findings} == {}
    rows = Snapshot.open(str(tables)).query("SELECT group_id FROM groups UNION SELECT group_id FROM offsets").to_pylist()
    groups = sorted(row["group_id"] for row in rows)
    assert listed == groups[: len(listed)]
    assert len(listed) == min(100, len(groups))
    # a log without its brokers has no ends, so no lag is known, and none is 0
    assert all(text.startswith(("–", "unknown")) for text in lags)
    assert len(found) == _MOST_PAGES


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[str]:
    """The address of the page of a running demo."""
    with demo_with_dashboard(tmp_path) as running:
        running.wait_until_printed("members come and go now; Ctrl-C ends the demo")
        yield running.wait_until_printed(r"dashboard: (http://\S+)/")
        running.process.send_signal(signal.SIGINT)
        assert running.wait() == 0


def test_pages_of_a_live_demo(window: Window, demo: str) -> None:
    found = dict(walked(window, f"{demo}/c/tables/", _MOST_PAGES))
    assert {page: findings for page, findings in found.items() if findings} == {}
    assert any("/groups/checkout" in page for page in found)
