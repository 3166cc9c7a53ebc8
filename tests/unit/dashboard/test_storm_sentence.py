"""The sentence of a run of rebalances names the members that left again and again."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pipelines.dashboard.pages.group.group_events import folded

_END = datetime(2026, 3, 4, 5, 20, tzinfo=UTC)


def rebalances(*left: list[str]) -> list[dict[str, Any]]:
    """Rebalances a minute apart, the newest first, with the members that left before each."""
    return [
        {"at": _END - timedelta(minutes=number), "kind": "rebalance", "words": "R", "left": names, "is_polled": False}
        for number, names in enumerate(left)
    ]


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ([["w3"], [], ["w3"], [], ["w3"]], "5 rebalances within 4 min: w3 left or timed out 3 times"),
        (
            [["w1"], ["w2"], ["w1"], ["w2"], []],
            "5 rebalances within 4 min: w1 left or timed out 2 times, w2 left or timed out 2 times",
        ),
        ([["w1"], ["w2"], ["w3"], ["w4"], ["w5"]], "5 rebalances within 4 min"),
        ([[], [], [], [], []], "5 rebalances within 4 min"),
        # two departures among nine are no pattern
        ([["w1"], ["w1"], [], [], [], [], [], [], []], "9 rebalances within 8 min"),
    ],
)
def test_members_that_leave_again_and_again(left: list[list[str]], words: str) -> None:
    (found,) = folded(rebalances(*left))
    assert (found["kind"], found["words"]) == ("storm", words)


def test_polls_see_a_lower_bound() -> None:
    (found,) = folded([{**event, "is_polled": True} for event in rebalances(["w3"], [], ["w3"], [], ["w3"])])
    assert found["words"] == "At least 5 rebalances within 4 min: w3 left or timed out 3 times"
