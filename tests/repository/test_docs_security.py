"""Every attack in docs/security.md has an outcome, and tests that exist."""

import ast
import re
from functools import cache

import pytest
from markdown_pages import ROOT

_PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
_SECTION = _PAGE.partition("\n## Attacks and misuse\n")[2].partition("\n## ")[0]
_HEAD = ("attack or misuse", "what happens", "tests")


def rows() -> list[list[str]]:
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in _SECTION.splitlines() if line.startswith("| ")]
    return [row for row in cells if tuple(row) != _HEAD]


@cache
def functions_of(path: str) -> frozenset[str]:
    """Names of the test functions of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def test_the_table_is_found() -> None:
    assert len(rows()) >= 40
    attacks = [attack for attack, *_ in rows()]
    assert len(set(attacks)) == len(attacks)


@pytest.mark.parametrize("row", rows(), ids=lambda row: re.sub(r"\W+", "-", row[0])[:40])
def test_an_attack_has_an_outcome_and_tests_that_exist(row: list[str]) -> None:
    assert len(row) == 3
    assert all(row)
    named = re.findall(r"`([^`]+)`", row[2])
    assert named
    assert re.sub(r"`[^`]+`", "", row[2]).strip(", ") == "", "only names of tests"
    for each in named:
        path, separator, name = each.partition("::")
        assert separator, f"{each}: use FILE::TEST"
        assert (ROOT / path).is_file(), each
        assert name in functions_of(path), each


def test_files_of_the_page_exist() -> None:
    for path in re.findall(r"tests/[\w/]+\.py", _PAGE):
        assert (ROOT / path).is_file(), path
