"""Colour arithmetic: contrast as in WCAG 2.2, colours as readers with deuteranopia see them, and differences of colours."""

import math
from typing import NamedTuple

#: Machado, Oliveira and Fernandes 2009, severity 1.0, for linear RGB.
_DEUTERANOPIA = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
#: Linear RGB to XYZ, D65.
_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
_WHITE = (0.95047, 1.0, 1.08883)


class Colour(NamedTuple):
    """Linear red, green and blue between 0 and 1."""

    red: float
    green: float
    blue: float

    @classmethod
    def parse(cls, text: str) -> "Colour":
        """A colour such as `#0a5fb0`."""
        assert len(text) == 7, text
        assert text[0] == "#", text
        return cls(*(_linear(int(text[place : place + 2], 16) / 255) for place in (1, 3, 5)))

    def with_deuteranopia(self) -> "Colour":
        """The colour as a reader without green receptors sees it."""
        return Colour(*(min(1.0, max(0.0, value)) for value in _product(_DEUTERANOPIA, self)))


def contrast(one: Colour, other: Colour) -> float:
    """The contrast ratio, 1 to 21."""
    dark, light = sorted(0.2126 * each.red + 0.7152 * each.green + 0.0722 * each.blue for each in (one, other))
    return (light + 0.05) / (dark + 0.05)


def difference(one: Colour, other: Colour) -> float:
    """ΔE*ab (CIE 1976): the distance in CIELAB."""
    return math.dist(_lab(one), _lab(other))


def _linear(share: float) -> float:
    return share / 12.92 if share <= 0.04045 else math.pow((share + 0.055) / 1.055, 2.4)


def _product(rows: tuple[tuple[float, float, float], ...], colour: Colour) -> list[float]:
    return [sum(factor * value for factor, value in zip(row, colour, strict=True)) for row in rows]


def _lab(colour: Colour) -> tuple[float, float, float]:
    x, y, z = (_lightness(value / white) for value, white in zip(_product(_XYZ, colour), _WHITE, strict=True))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _lightness(share: float) -> float:
    return share ** (1 / 3) if share > 216 / 24389 else (24389 / 27 * share + 16) / 116
