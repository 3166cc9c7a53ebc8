"""README and docs as a CommonMark parser sees them: fenced blocks, links, names of headings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "schemas").rglob("*.md")])
_PARSER = MarkdownIt("commonmark").enable("table")
_HTML_LINK = re.compile(r'\b(?:href|src|srcset)="([^"\s]+)"')


def page_id(page: Path) -> str:
    """The name of a page in test ids."""
    return str(page.relative_to(ROOT))


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is that of its opening fence, counted from 1."""

    language: str
    text: str
    line: int
    is_closed: bool


def blocks(page: Path) -> list[Block]:
    """Fenced blocks, in order. A block without a closing fence extends to the end of the page."""
    text = page.read_text(encoding="utf-8")
    return [_block(token, text.splitlines()) for token in _tokens(text) if token.type == "fence"]


def _block(token: Token, lines: list[str]) -> Block:
    assert token.map is not None
    first, end = token.map
    last_line = lines[end - 1].strip()
    is_closed = end - 1 > first and set(last_line) == {token.markup[0]} and len(last_line) >= len(token.markup)
    return Block(token.info.strip(), token.content, first + 1, is_closed)


def prose(page: Path) -> str:
    """Text outside of blocks and code spans."""
    return "\n".join(token.content for token in _inline(page) if token.type == "text")


def links(page: Path) -> list[str]:
    """Targets of links and images, including those in HTML."""
    found = []
    for token in _inline(page):
        if token.type in ("html_block", "html_inline"):
            found += _HTML_LINK.findall(token.content)
        found += [str(token.attrs[name]) for name in ("href", "src") if name in token.attrs]
    return found


def anchors(page: Path) -> set[str]:
    """Anchors that headings get when the page is rendered; the second of the same name ends in -1."""
    tokens = _tokens(page.read_text(encoding="utf-8"))
    seen: dict[str, int] = {}
    for opening, title in pairwise(tokens):
        if opening.type == "heading_open":
            text = "".join(part.content for part in title.children or ())
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            seen[name] = seen.get(name, 0) + 1
    return {f"{name}-{number}" if number else name for name, count in seen.items() for number in range(count)}


def _inline(page: Path) -> Iterator[Token]:
    for token in _tokens(page.read_text(encoding="utf-8")):
        yield from token.children or (token,)


@cache
def _tokens(text: str) -> tuple[Token, ...]:
    """The tokens of a page. Many tests read each page, and parsing all pages takes seconds."""
    return tuple(_PARSER.parse(text))
