"""Tables of docs whose last column names tests: every row is complete, and its tests exist."""

import ast
import re
from functools import cache
from typing import NamedTuple

import pytest
from markdown_pages import ROOT


class NamedTests(NamedTuple):
    """A table, and the least number of its rows."""

    page: str
    section: str
    head: tuple[str, ...]
    rows: int


TABLES = (
    NamedTests("docs/security.md", "Attacks and misuse", ("attack or misuse", "what happens", "tests"), 40),
    NamedTests("docs/conformance.md", "Public reports", ("report", "kind", "when tried", "tests"), 15),
)


def rows(table: NamedTests) -> list[list[str]]:
    page = (ROOT / table.page).read_text(encoding="utf-8")
    section = page.partition(f"\n## {table.section}\n")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in section.splitlines() if line.startswith("| ")]
    return [row for row in cells if tuple(row) != table.head]


ROWS = [(table, row) for table in TABLES for row in rows(table)]


@cache
def functions_of(path: str) -> frozenset[str]:
    """Names of the test functions of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.page)
def test_the_table_is_found(table: NamedTests) -> None:
    subjects = [subject for subject, *_ in rows(table)]
    assert len(subjects) >= table.rows
    assert len(set(subjects)) == len(subjects)


@pytest.mark.parametrize(("table", "row"), ROWS, ids=[re.sub(r"\W+", "-", row[0])[:40] for _, row in ROWS])
def test_a_row_is_complete_and_its_tests_exist(table: NamedTests, row: list[str]) -> None:
    assert len(row) == len(table.head)
    assert all(row)
    named = re.findall(r"`([^`]+)`", row[-1])
    assert named
    assert re.sub(r"`[^`]+`", "", row[-1]).strip(", ") == "", "only names of tests"
    for each in named:
        path, separator, name = each.partition("::")
        assert separator, f"{each}: use FILE::TEST"
        assert (ROOT / path).is_file(), each
        assert name in functions_of(path), each


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.page)
def test_files_of_the_page_exist(table: NamedTests) -> None:
    for path in re.findall(r"tests/[\w/]+\.py", (ROOT / table.page).read_text(encoding="utf-8")):
        assert (ROOT / path).is_file(), path
