"""`expires_at` for plain values, as in a row of a table: the numbers that the SQL view must give too."""

from dataclasses import dataclass
from typing import Any

import pytest

from coordinator_core.state.era import ALL_ERAS, DAY_MS, Era
from coordinator_core.state.expiry import expires_at


@dataclass(frozen=True)
class GroupRow:
    group_type: str = "classic"
    state: str = "Stable"
    protocol_type: str | None = "consumer"
    state_timestamp: int | None = None
    subscribed_topics: tuple[str, ...] | None = ("t",)
    generation: int = 1


@dataclass(frozen=True)
class OffsetRow:
    commit_timestamp: int = 100
    expire_timestamp: int | None = None


PLAIN, EXPLICIT = OffsetRow(), OffsetRow(expire_timestamp=500)
SIMPLE = GroupRow("simple", "Empty", None, 70, None, 0)
EMPTY = GroupRow(state="Empty", state_timestamp=200, subscribed_topics=())
OLD_EMPTY = GroupRow(state="Empty", subscribed_topics=())
SUBSCRIBED = GroupRow()
UNSUBSCRIBED = GroupRow(subscribed_topics=("other",))
UNKNOWN = GroupRow(subscribed_topics=None)
CONSUMER = GroupRow("consumer", "Empty", "consumer", None, ())
SUBSCRIBED_CONSUMER = GroupRow("consumer", "Reconciling", "consumer")
SHARE = GroupRow("share", "Empty", "share", None, ())

#: group, then the result (plain commit, explicit expire time) of eras 0.9–1, 2, 3, 4; retention is 1000
TABLE = [
    (SIMPLE, (1101, 501), (1100, 500), (1100, 500), (1100, 500)),
    (EMPTY, (1101, 501), (1200, 500), (1200, 500), (1200, 500)),
    (OLD_EMPTY, (1101, 501), (1100, 500), (1100, 500), (1100, 500)),
    (SUBSCRIBED, (1101, 501), (None, None), (None, None), (None, None)),
    (UNSUBSCRIBED, (1101, 501), (None, None), (1100, 500), (1100, 500)),
    (UNKNOWN, (1101, 501), (None, None), (None, None), (None, None)),
    (CONSUMER, (1101, 501), None, None, (1100, 500)),
    (SUBSCRIBED_CONSUMER, (1101, 501), None, None, (None, None)),
    (SHARE, (1101, 501), None, None, (None, None)),
    (None, (1101, 501), (None, None), (None, None), (None, None)),
]
COLUMN = {"0.9": 0, "0.10": 0, "1": 0, "2": 1, "3": 2, "4": 3, "redpanda": 2}


@pytest.mark.parametrize("era", ALL_ERAS)
@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[0]))
def test_expires_at(era: str, row: tuple[Any, ...]) -> None:
    group, *answers = row
    answer = answers[COLUMN[era]]
    if answer is None:
        return
    assert tuple(expires_at(Era.named(era), 1000, group, "t", offset) for offset in (PLAIN, EXPLICIT)) == answer


@pytest.mark.parametrize(("era", "at"), [("3", 1100), ("4", None)])
def test_pending_commits_protect_in_the_java_coordinator(era: str, at: int | None) -> None:
    assert expires_at(Era.named(era), 1000, SIMPLE, "t", PLAIN, pending=True) == at


def test_default_retention() -> None:
    assert {name: era.default_retention_ms // DAY_MS for name, era in ALL_ERAS.items()} == {
        "0.9": 1,
        "0.10": 1,
        "1": 7,
        "2": 7,
        "3": 7,
        "4": 7,
        "redpanda": 7,
    }
