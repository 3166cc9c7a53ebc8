"""docs/assignors.md: its table names every assignor, and its examples show the assignors' results."""

import re
from pathlib import Path

import pytest
from consumer_groups import ConsumerGroup

from coordinator_core.assignors import (
    BroadcastAssignor,
    CooperativeStickyAssignor,
    RackAwareAssignor,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)

PAGE = (Path(__file__).parents[2] / "docs" / "assignors.md").read_text(encoding="utf-8")
EXAMPLES = [BroadcastAssignor(), CooperativeStickyAssignor(), RangeAssignor(), RoundRobinAssignor(), StickyAssignor()]
BY_NAME = {assignor.name: assignor for assignor in EXAMPLES}


def rows(columns: int) -> list[tuple[str, ...]]:
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| `"))
    return [(row[0].strip("`"), *row[1:]) for row in cells if len(row) == columns]


def by_member(text: str) -> dict[str, str]:
    """The text after each name and colon: "C0: a b, C1:" is two members, the second of which has nothing."""
    return {name: value.strip() for name, value in re.findall(r"(\w+):([^,]*)", text)}


def test_every_assignor_is_in_the_table() -> None:
    custom = {BroadcastAssignor.name, RackAwareAssignor.name, RandomAssignor.name}

    assert {(name, mark == "✓") for name, _, mark in rows(3)} == {(name, name in custom) for name in BY_NAME.keys() | custom}


@pytest.mark.parametrize(("name", "topics", "wanted", "before", "change", "after"), rows(6))
def test_examples(name: str, topics: str, wanted: str, before: str, change: str, after: str) -> None:
    group = ConsumerGroup(BY_NAME[name], {topic: int(count) for topic, count in by_member(topics).items()})
    for member, subscribed in by_member(wanted).items():
        group.join(member, *subscribed.split())
    assert group.rebalance() == by_member(before)

    member, verb = change.split()
    if verb == "leaves":
        group.leave(member)
    else:
        group.join(member, *next(iter(by_member(wanted).values())).split())
    assert group.rebalance() == by_member(after)
