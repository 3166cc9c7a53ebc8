"""Open transactions and deleted records as events and marks of the chart of a group."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pipelines.dashboard.pages.group.group_chart import group_chart
from pipelines.dashboard.pages.group.incident_events import loss_events

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def minute(number: float) -> datetime:
    return NOON + timedelta(minutes=number)


def samples(*values: tuple[float, int | None, int | None], topic: str = "orders") -> list[dict[str, Any]]:
    """Rows of minute, blocked partitions and lost messages."""
    return [{"topic": topic, "at": minute(at), "blocked_partitions": b, "messages_lost": lost} for at, b, lost in values]


def test_lost_records_are_one_event_until_the_group_has_caught_up() -> None:
    rows = samples((0, 0, 0), (1, 0, 10), (2, 0, None), (3, 0, 1_200), (4, 0, 0), (5, 0, 1))
    assert [(event["at"], event["words"]) for event in loss_events(rows)] == [
        (minute(1), "Retention deleted 1,200 records of orders before the group read them"),
        (minute(5), "Retention deleted 1 record of orders before the group read them"),
    ]


def test_events_are_marks_with_their_words() -> None:
    rebalance = {"recorded_at": minute(-50), "to_generation": 7, "is_polled": False}
    events = [
        {"at": minute(-10), "kind": "alert", "words": "Alert A fired: value 3"},
        {"at": minute(-20), "kind": "loss", "words": "Retention deleted 5 records"},
        {"at": minute(-20), "kind": "loss", "words": "Retention deleted 6 records"},
        {"at": minute(-30), "kind": "transaction", "words": "Open transactions"},
        {"at": minute(-40), "kind": "removal", "words": "Offsets removed"},
        {
            "at": minute(-50),
            "kind": "storm",
            "words": "5 rebalances",
            "events": [{"at": minute(-50), "kind": "rebalance", "words": "R 7"}],
        },
    ]
    model = {
        "span": {"start": minute(-60), "end": NOON},
        "events": events,
        "rebalances": [rebalance, {"recorded_at": minute(-55), "to_generation": None, "is_polled": True}],
        "resets": [{"reset_at": minute(-5)}],
        **{name: [] for name in ("lag_history", "commits", "owners", "offsets")},
        "members": {},
    }
    assert [(mark.kind, mark.label, mark.words) for mark in group_chart(model).marks] == [
        ("rebalance", "", ""),
        ("rebalance", "7", "R 7."),
        ("transaction", "T", "Open transactions."),
        ("loss", "L", "Retention deleted 5 records. Retention deleted 6 records."),
        ("alert", "A", "Alert A fired: value 3."),
        ("reset", "R", ""),
    ]
