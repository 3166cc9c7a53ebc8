"""The pictures of pages in docs: their script, their sizes, and the docs that show them."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from dashboards import Dashboard
from markdown_pages import PAGES, ROOT, links
from playwright.sync_api import Browser

pytestmark = pytest.mark.long

SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "generate_screenshots.py"))
FOLDER: Path = SCRIPT["IMAGES"]
LISTED = {picture.file for picture in SCRIPT["PICTURES"]}


def test_names_of_pictures_are_unique() -> None:
    assert len(LISTED) == len(SCRIPT["PICTURES"])


def test_docs_show_pictures_of_the_script() -> None:
    """Every file is drawn by the script and shown, and every picture that docs show is a file."""
    shown = {(page.parent / link).resolve() for page in PAGES for link in links(page) if "://" not in link}
    files = set(FOLDER.glob("*"))
    assert {each for each in shown if each.parent == FOLDER} == files
    assert {each.name for each in files} <= LISTED


def test_pictures_are_small() -> None:
    sizes = {each.name: each.stat().st_size for each in FOLDER.glob("*.png")}
    assert {name: size for name, size in sizes.items() if size > SCRIPT["BYTES_LIMIT"]} == {}


@pytest.mark.browser
def test_a_picture(browser: Browser, server: Dashboard, tmp_path: Path) -> None:
    picture = next(each for each in SCRIPT["PICTURES"] if each.name == "overview")
    png = SCRIPT["draw"](browser, f"{server.url}/c/{SCRIPT['CLUSTER']}", picture, tmp_path).read_bytes()
    # signature, length and name of the header; width, height, bits, colour type 3: palette
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(png[16:20]) == picture.width
    assert int.from_bytes(png[20:24]) <= SCRIPT["HEIGHT_LIMIT"]
    assert png[25] == 3
