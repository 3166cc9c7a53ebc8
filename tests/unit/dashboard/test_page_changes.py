"""Order of the page of changes, and the tiles of the overview."""

from typing import Any

from pipelines.dashboard.pages.changes.changes import by_weight
from pipelines.dashboard.pages.overview.overview import was_behind


def test_groups_with_the_most_serious_change_come_first() -> None:
    rows: list[dict[str, Any]] = [
        {"group_id": group, "change": change}
        for group, change in (("a", "progress"), ("b", "rebalanced"), ("c", "progress"), ("c", "reset"), ("d", "appeared"))
    ]
    found = [(row["group_id"], row["change"]) for row in by_weight(rows)]
    assert found == [("c", "reset"), ("c", "progress"), ("b", "rebalanced"), ("d", "appeared"), ("a", "progress")]


def test_a_group_that_was_never_behind_has_no_tile() -> None:
    ages: list[list[float | None]] = [[None], [20.0, 59.0], [None, 900.0, 30.0]]
    assert [was_behind({"points": [{"lag_seconds": age} for age in each]}) for each in ages] == [False, False, True]
