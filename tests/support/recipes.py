"""Sections of docs/python.md and docs/recipes.md, whose Python blocks read tables."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from markdown_pages import ROOT, Block, blocks

RECIPES = (ROOT / "docs" / "python.md", ROOT / "docs" / "recipes.md")
#: Title of the recipe that tests/pipeline/test_streams_of_histories.py runs.
STREAM = "Spark, as a stream"
#: The folder in the blocks.
_SHOWN = "/data/groups"


@dataclass(frozen=True)
class Recipe:
    """A section with Python blocks. `before` are blocks of earlier sections that it needs."""

    page: Path
    title: str
    before: tuple[Block, ...]
    blocks: tuple[Block, ...]

    @property
    def is_spark(self) -> bool:
        """True if a block needs a Spark session."""
        return any("spark" in block.text for block in self.blocks)

    def run(self, root: str, names: Mapping[str, object]) -> None:
        """Run the blocks with the tables under `root`; `names` exist already."""
        namespace = {"__name__": "page", **names}
        for block in (*self.before, *self.blocks):
            assert _SHOWN in block.text or "groups" in block.text
            # blank lines before it, so that a traceback has the line of the page
            exec(compile("\n" * block.line + block.text.replace(_SHOWN, root), str(self.page), "exec"), namespace)


def recipes(*, is_spark: bool) -> list[Recipe]:
    """The recipes that need a Spark session, or those that need none."""
    return [recipe for page in RECIPES for recipe in _of_page(page) if recipe.is_spark is is_spark]


def _of_page(page: Path) -> list[Recipe]:
    lines = page.read_text(encoding="utf-8").splitlines()
    heads = [(number, line[3:]) for number, line in enumerate(lines, 1) if re.match("## ", line)]
    ends = [*(number for number, _ in heads[1:]), len(lines) + 1]
    python = [block for block in blocks(page) if block.language == "python"]
    found = []
    for (start, title), end in zip(heads, ends, strict=True):
        own = tuple(block for block in python if start < block.line < end)
        # python.md is one story, which begins with its first section; each section of recipes.md stands alone
        first = tuple(python[:1]) if page.name == "python.md" and own and own[0] != python[0] else ()
        if own:
            found.append(Recipe(page, title, first, own))
    return found
