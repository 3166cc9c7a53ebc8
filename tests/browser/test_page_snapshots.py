"""What assistive technology reads of a page, compared with text files in snapshots/.

GROUPLAKE_RENEW_SNAPSHOTS=1 python -m pytest tests/browser/test_page_snapshots.py writes the files; read their difference.
"""

import os
from pathlib import Path

import pytest
from browser_pages import View, Window
from dashboards import Dashboard
from page_tables import CLUSTER

pytestmark = pytest.mark.browser

_FOLDER = Path(__file__).parent / "snapshots"
_PATHS = {"overview": "/", "groups": "/groups", "group": "/groups/billing"}
_IS_RENEWED = os.environ.get("GROUPLAKE_RENEW_SNAPSHOTS") == "1"


@pytest.mark.parametrize("name", _PATHS)
def test_a_page_reads_as_its_snapshot(window: Window, server: Dashboard, name: str) -> None:
    file = _FOLDER / f"{name}.yaml"
    with window.opened(View(), f"{server.url}/c/{CLUSTER}{_PATHS[name]}") as visit:
        text = visit.page.locator("body").aria_snapshot() + "\n"
        assert visit.errors == []
    if _IS_RENEWED:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_every_snapshot_is_of_a_page() -> None:
    assert {file.stem for file in _FOLDER.iterdir()} == set(_PATHS)
