"""Fenced blocks of README and docs are closed, and valid in their language.

Python runs, the blocks of a page one after the other in one namespace; test_docs_recipes.py runs the pages whose blocks read
tables. TOML is configuration that loads; JSON and SQL parse;
shell has no syntax errors. tests/e2e/test_readme.py runs the commands of ```console blocks.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest
import sqlglot
from markdown_pages import PAGES, Block, blocks, page_id, prose
from recipes import RECIPES

from pipelines.runtime.configuration import load_configuration

LANGUAGES = {"console", "json", "mermaid", "python", "sh", "sql", "toml", ""}
Page = pytest.mark.parametrize("page", PAGES, ids=page_id)


def in_language(language: str) -> list[object]:
    """Parameters: each block of the language, named by page and line."""
    return [
        pytest.param(block, id=f"{page_id(page)}:{block.line}")
        for page in PAGES
        for block in blocks(page)
        if block.language == language
    ]


def python_pages() -> list[Path]:
    return [page for page in PAGES if page not in RECIPES and any(block.language == "python" for block in blocks(page))]


@Page
def test_fences_are_balanced(page: Path) -> None:
    for block in blocks(page):
        assert block.is_closed, f"the fence of line {block.line} is not closed"
        assert "```" not in block.text, f"a fence stands inside of the block of line {block.line}"
    assert "```" not in prose(page), "a fence stands in the middle of a line"


@Page
def test_languages_are_known(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES


@pytest.mark.parametrize("page", python_pages(), ids=page_id)
def test_python_runs(page: Path) -> None:
    namespace: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        if block.language == "python":
            # blank lines before it, so that a traceback has the line of the page
            exec(compile("\n" * block.line + block.text, str(page), "exec"), namespace)


@pytest.mark.parametrize("block", in_language("toml"))
def test_toml_is_configuration(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "shown.toml"
    path.write_text(block.text, encoding="utf-8")
    load_configuration(str(path), dict.fromkeys(re.findall(r'"env:(\w+)"', block.text), "set"))


@pytest.mark.parametrize("block", in_language("json"))
def test_json_parses(block: Block) -> None:
    assert json.loads(block.text)


@pytest.mark.parametrize("block", in_language("sql"))
def test_sql_parses(block: Block) -> None:
    assert sqlglot.parse(block.text, dialect="spark")


@pytest.mark.parametrize("block", in_language("sh"))
def test_shell_has_no_syntax_error(block: Block) -> None:
    ended = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
