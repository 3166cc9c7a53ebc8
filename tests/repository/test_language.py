"""The rules of language in CONTRIBUTING.md, as far as a program can check them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator_core.service.node.metrics import Metrics
from pipelines.tables import definitions

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "schemas").rglob("*.md")])
_WIDTH = 100
_WORDS = 12
_FENCE = re.compile(r"^ *(```|~~~)")
#: Words that STYLE rules out in what a user reads: parties without names, and verbs with too many meanings.
_BANNED = re.compile(r"\b(whoever|whom|somebody|someone|nobody|everybody|tells?|told|for ever|is no|are no|none of|is to be)\b")
#: Calls whose text a user reads.
_SHOWN = {"progress", "print_progress", "print"}


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Lines outside of code blocks, with their numbers."""
    in_code = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if _FENCE.match(line):
            in_code = not in_code
        elif not in_code:
            yield number, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_wrapped(page: Path) -> None:
    """Tables are not, and a link may be longer than a line."""
    too_long = [number for number, line in prose(page) if len(line) > _WIDTH and not line.startswith("|") and "](" not in line]
    assert too_long == []


@pytest.mark.parametrize("name", [*definitions.WRITE_ORDER, *definitions.ALERTS])
def test_comments_of_columns_are_short_noun_phrases(name: str) -> None:
    table = definitions.table(name)
    for comment in (table.description, *table.comments.values()):
        assert len(comment.split()) <= _WORDS, comment
        assert not comment.endswith("."), comment
        assert not re.match(r"(What|Whether|How|When|Where|Why|Is|Are|Does)\b", comment), comment


def test_help_of_metrics_is_a_short_noun_phrase() -> None:
    found = re.findall(r"^# HELP (\S+) (.+)$", Metrics().text().decode(), re.MULTILINE)
    assert found
    for name, text in found:
        assert len(text.split()) <= _WORDS, f"{name}: {text}"
        assert not text.endswith("."), f"{name}: {text}"


def shown_texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Texts of exceptions that are raised, and of what is printed, with their lines."""
    for node in ast.walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call):
            continue
        name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if isinstance(node, ast.Raise) or name in _SHOWN:
            for part in ast.walk(call):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


@pytest.mark.parametrize("package", ["coordinator_core", "grouplake", "pipelines"])
def test_messages_name_parties_and_use_plain_verbs(package: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for line, text in shown_texts(ast.parse(file.read_text(encoding="utf-8")))
        if _BANNED.search(text)
    ]
    assert found == []
