"""The colours of page.css in both themes: contrast of texts, lines and borders, and colours for readers with deuteranopia."""

import re
from itertools import combinations
from pathlib import Path

import pytest
from colours import Colour, contrast, difference

import pipelines.dashboard

_CSS = (Path(pipelines.dashboard.__file__).parent / "static" / "page.css").read_text(encoding="utf-8")
_DARK = re.compile(r"@media \(prefers-color-scheme: dark\) \{\s*:root \{(.*?)\}\s*\}", re.DOTALL)
_LIGHT = re.compile(r":root \{(.*?)\}", re.DOTALL)
_COLOUR = re.compile(r"--([\w-]+): (#[0-9a-f]{6});")

THEMES = {"light": "".join(_LIGHT.findall(_DARK.sub("", _CSS))), "dark": "".join(_DARK.findall(_CSS))}
PALETTES = {theme: {name: Colour.parse(value) for name, value in _COLOUR.findall(text)} for theme, text in THEMES.items()}

#: Papers with the colours of texts on them.
TEXTS = {
    "paper": ("ink", "quiet", "accent", "bad", "warn", "ok", "unknown"),
    "raised": ("ink", "quiet", "accent", "bad", "warn", "ok", "unknown"),
    "bad-paper": ("ink", "quiet", "accent", "bad", "warn"),
    "warn-paper": ("ink", "quiet", "accent", "bad", "warn"),
    **{f"m{number}": ("on-member",) for number in range(8)},
    **{f"s{number}": ("on-low",) for number in range(4)},
    **{f"s{number}": ("on-high",) for number in range(4, 7)},
}
#: Lines of charts, outlines of the focus, borders of controls and callouts.
LINES = ("accent", "bad", "border", "quiet", "focus")
#: Unknown is as grey as OK: both are no defect, and their shapes differ.
STATUSES = ("bad", "warn", "ok")


def test_both_themes_have_the_same_colours() -> None:
    assert PALETTES["light"].keys() == PALETTES["dark"].keys()
    assert {"paper", "ink", "m7", "s6"} <= PALETTES["light"].keys()


@pytest.mark.parametrize("theme", THEMES)
def test_texts_have_a_contrast_of_4_5(theme: str) -> None:
    palette = PALETTES[theme]
    found = {f"{text} on {paper}": contrast(palette[text], palette[paper]) for paper, texts in TEXTS.items() for text in texts}
    assert {pair: round(ratio, 2) for pair, ratio in found.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_lines_and_borders_have_a_contrast_of_3(theme: str) -> None:
    palette = PALETTES[theme]
    found = {line: contrast(palette[line], palette["paper"]) for line in LINES}
    assert {line: round(ratio, 2) for line, ratio in found.items() if ratio < 3} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_statuses_differ_for_readers_with_deuteranopia(theme: str) -> None:
    seen = {name: PALETTES[theme][name].with_deuteranopia() for name in (*STATUSES, "unknown")}
    pairs = [*combinations(STATUSES, 2), ("bad", "unknown"), ("warn", "unknown")]
    found = {pair: difference(seen[pair[0]], seen[pair[1]]) for pair in pairs}
    assert {pair: round(each, 1) for pair, each in found.items() if each < 20} == {}


def test_known_values() -> None:
    """Published values: white and black, and the difference of two greys, which is that of their lightness."""
    white, black, grey = (Colour.parse(text) for text in ("#ffffff", "#000000", "#777777"))
    assert contrast(white, black) == pytest.approx(21)
    assert contrast(white, grey) == pytest.approx(4.48, abs=0.01)
    assert difference(white, black) == pytest.approx(100, abs=0.01)
    assert difference(white.with_deuteranopia(), white) == pytest.approx(0, abs=0.1)
    # red and green of the same lightness are nearly one colour
    red, green = (Colour.parse(text).with_deuteranopia() for text in ("#b04a30", "#5d7a2e"))
    assert difference(red, green) < 20 < difference(Colour.parse("#b04a30"), Colour.parse("#5d7a2e"))
