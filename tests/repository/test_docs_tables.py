"""docs/tables.md describes every table and view."""

import re
from pathlib import Path

import pytest

from pipelines.tables import definitions

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "tables.md").read_text(encoding="utf-8")


def test_every_table_is_on_the_page() -> None:
    assert set(re.findall(r"<!-- table (\w+) -->", PAGE)) == {*definitions.WRITE_ORDER, *definitions.ALERTS}


@pytest.mark.parametrize("view", definitions.VIEWS)
def test_every_view_is_on_the_page(view: str) -> None:
    assert f"| `{view}` |" in PAGE
