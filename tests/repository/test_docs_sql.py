"""docs/sql.md: the page is generated anew from its tables, no answer is empty, and views can be filtered by any column."""

import itertools
import re
import runpy
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from shop_day import day_tables

from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.tables.store import literal

pytestmark = pytest.mark.long

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT: Mapping[str, Any] = runpy.run_path(str(DOCS / "generate_sql.py"))
PAGE = (DOCS / "sql.md").read_text(encoding="utf-8")

_VIEWS = ("ownership", "rebalances", "resets", "consumption_edges", "unused_groups")
#: Columns that people filter by together.
_TOGETHER = ("group_id", "topic", "partition", "member_id", "client_id", "client_host", "trigger", "reset_by")
_VALUES = 2


@pytest.fixture(scope="module")
def root() -> str:
    return day_tables()


def test_the_page_is_that_of_its_tables(root: str) -> None:
    assert SCRIPT["page"](root) == PAGE, "run python docs/generate_sql.py"
    assert check(root) == []


def test_thirty_questions_have_answers() -> None:
    counts = re.findall(r"^\((\d+) rows?\)$", PAGE, re.MULTILINE)
    assert len(counts) >= 30
    assert "0" not in counts
    numbers = [int(number) for number in re.findall(r"^### (\d+)\. ", PAGE, re.MULTILINE)]
    assert numbers == list(range(1, len(counts) + 1))


def condition(columns: tuple[str, ...], values: tuple[Any, ...]) -> str:
    def text(value: Any) -> str:
        return f"TIMESTAMP '{value.isoformat()}'" if isinstance(value, datetime) else literal(value)

    return " AND ".join(
        f"{column} IS NULL" if value is None else f"{column} = {text(value)}"
        for column, value in zip(columns, values, strict=True)
    )


@pytest.mark.parametrize("view", _VIEWS)
def test_a_filter_selects_the_rows_with_its_values(view: str, root: str) -> None:
    """Filters move below windows and aggregations, where they must not change a row."""
    snapshot = Snapshot.open(root)
    rows = snapshot.query(f"SELECT * FROM {view}").to_pylist()
    pairs = itertools.combinations([column for column in rows[0] if column in _TOGETHER], 2)
    for columns in [*((column,) for column in rows[0]), *pairs]:
        values = dict.fromkeys(tuple(row[column] for column in columns) for row in rows)
        for wanted in list(values)[:_VALUES]:
            where = condition(columns, wanted)
            found = snapshot.query(f"SELECT * FROM {view} WHERE {where}").to_pylist()
            expected = [row for row in rows if tuple(row[column] for column in columns) == wanted]
            assert sorted(map(str, found)) == sorted(map(str, expected)), where
