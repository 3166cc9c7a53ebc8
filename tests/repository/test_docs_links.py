"""Links between pages have existing targets, headings included, and every page is in an index."""

from pathlib import Path

import pytest
from markdown_pages import PAGES, ROOT, anchors, links, page_id


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("index", [ROOT / "docs" / "README.md", ROOT / "docs" / "adr" / "README.md"], ids=["docs", "adr"])
def test_every_page_is_in_its_index(index: Path) -> None:
    assert {page.name for page in index.parent.glob("*.md")} - {"README.md"} <= set(links(index))
