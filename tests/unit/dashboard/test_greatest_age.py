"""The greatest of several ages, some of which may be unknown."""

from typing import Any

import pytest

from pipelines.dashboard.pages.parts.greatest_age import greatest_age


def row(lag: int | None, *age: float | None) -> dict[str, Any]:
    """`age`: the age with its bounds; without one it is unknown."""
    seconds, low, high = age or (None, None, None)
    return {"lag": lag, "lag_seconds": seconds, "lag_seconds_low": low, "lag_seconds_high": high}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], (None, None, None)),
        ([row(0, 0, 0, 0), row(9, 40, 30, 50)], (40, 30, 50)),
        ([row(9, 40, 30, 50), row(9, 20, 10, None)], (40, 30, None)),
        ([row(9, 40, 30, 50), row(9)], (40, 30, None)),
        ([row(9, 40, 30, 50), row(0)], (40, 30, 50)),
        # at the end in one partition, behind for an unknown time in another one
        ([row(0, 0, 0, 0), row(9)], (None, None, None)),
        ([row(0, 0, 0, 0), row(None)], (0, 0, 0)),
        ([row(9)], (None, None, None)),
    ],
)
def test_the_greatest_age(rows: list[dict[str, Any]], expected: tuple[float | None, ...]) -> None:
    assert tuple(greatest_age(rows).values()) == expected
