"""Text on a terminal. Names that clients chose may have control characters, which would set its title, colours or direction."""

from collections.abc import Callable
from functools import partial
from typing import TextIO

#: In place of a character that does not print: of control, of bidirectional text, without a glyph.
MASK = "·"


def masked(text: str, keep: str = "") -> str:
    """The text with MASK in place of characters that do not print, those in `keep` excepted."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else MASK for c in text)


def mask_of(out: TextIO, keep: str = "") -> Callable[[str], str]:
    """The mask for values or lines that are written to `out`: `masked` on a terminal. Files and pipes get the exact text."""
    return partial(masked, keep=keep) if out.isatty() else str
