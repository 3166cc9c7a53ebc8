"""The pictures of README equal the output of their scripts."""

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_diagram_is_drawn_by_its_script() -> None:
    script = runpy.run_path(str(DOCS / "generate_diagram.py"))
    for name, palette in script["PALETTES"].items():
        drawn = script["diagram"](palette)
        assert (script["IMAGES"] / f"overview-{name}.svg").read_text() == drawn, "run: python docs/generate_diagram.py"


@pytest.mark.slow
@pytest.mark.spark
def test_the_terminal_shows_what_the_commands_print(tmp_path: Path) -> None:
    script = runpy.run_path(str(DOCS / "generate_terminal.py"))
    drawn = script["picture"](script["transcript"](tmp_path))
    assert _without_seconds(script["IMAGE"].read_text()) == _without_seconds(drawn), "run: python docs/generate_terminal.py"


def _without_seconds(picture: str) -> str:
    """Mask durations: the text of a line and its length on the screen vary with them."""
    return re.sub(r'textLength="[\d.]+"([^>]*>batch \d+: [^<]*, )[\d.]+ s', r"\1", picture)
