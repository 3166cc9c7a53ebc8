"""A matrix of ages: a row per group, a column per partition, and shades of one hue."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

#: Greatest age in seconds of each shade, from the lightest; older ones have the darkest shade.
SHADES = (0.0, 10.0, 60.0, 600.0, 3_600.0, 86_400.0)
#: Rows and columns that are drawn; the table of a page has the same ones.
MOST_GROUPS, MOST_PARTITIONS = 24, 64

WIDTH = 1160
_LEFT, _TOP = 220, 24
_ROW, _WIDEST, _BETWEEN = 24.0, 64.0, 2.0
#: Least width of a cell with its age as text.
_TEXT_WIDTH = 52.0


@dataclass(frozen=True)
class Cell:
    """An age in its shade; `shade` is None where the age is unknown. Without an upper bound the record may be older."""

    x: float
    shade: int | None
    seconds: float | None
    is_lower_bound: bool = False


@dataclass(frozen=True)
class Matrix:
    """Rows with their y and cells. Partitions are labelled so that labels do not overlap."""

    width: int
    height: float
    left: float
    top: float
    cell_width: float
    row_height: float
    has_text: bool
    columns: tuple[tuple[float, int, bool], ...]
    rows: tuple[tuple[float, str, tuple[Cell, ...]], ...]


def shade(seconds: float) -> int:
    """Number of the shade of an age."""
    return next((number for number, most in enumerate(SHADES) if seconds <= most), len(SHADES))


def matrix(
    partitions: Sequence[int],
    ages: Mapping[str, Mapping[int, float | None]],
    lower_bounds: Collection[tuple[str, int]] = frozenset(),
) -> Matrix:
    """The matrix of these partitions and of the groups of `ages`. A group does not read the partitions that it has no age of.

    `lower_bounds` are the pairs of group and partition whose age has no upper bound.
    """
    pitch = round(min(_WIDEST, (WIDTH - _LEFT) / max(1, len(partitions))), 2)
    every = 1 if pitch >= 24 else 4
    columns = tuple((_x(number, pitch), partition, number % every == 0) for number, partition in enumerate(partitions))
    rows = tuple(
        (
            _TOP + number * _ROW,
            group,
            tuple(
                _cell(x, of_group[partition], (group, partition) in lower_bounds)
                for x, partition, _ in columns
                if partition in of_group
            ),
        )
        for number, (group, of_group) in enumerate(ages.items())
    )
    return Matrix(
        width=WIDTH,
        height=_TOP + len(rows) * _ROW + 4,
        left=_LEFT,
        top=_TOP,
        cell_width=round(pitch - _BETWEEN, 2),
        row_height=_ROW - _BETWEEN,
        has_text=pitch >= _TEXT_WIDTH,
        columns=columns,
        rows=rows,
    )


def _x(number: int, pitch: float) -> float:
    return round(_LEFT + number * pitch, 1)


def _cell(x: float, seconds: float | None, is_lower_bound: bool) -> Cell:
    return Cell(x, None if seconds is None else shade(seconds), seconds, is_lower_bound)
