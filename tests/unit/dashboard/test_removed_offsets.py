"""Removals of offsets and first commits after them, from the rows of a history."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pipelines.dashboard.history.removed_offsets import removals, returns
from pipelines.dashboard.history.span import span_until

END = datetime(2026, 3, 4, 14, tzinfo=UTC)
SPAN = span_until(END, "1h")


def _row(minute: int, change: str, partition: int = 0, **values: Any) -> dict[str, Any]:
    at = SPAN.start + timedelta(minutes=minute)
    return {
        "topic": "orders",
        "partition": partition,
        "change": change,
        "at": at,
        "min_offset": None,
        "previous_offset": None,
        **values,
    }


def test_removals_are_counted_by_time_and_change() -> None:
    rows = [_row(1, "expire"), _row(2, "tombstone", 1), _row(1, "expire", 2), _row(-1, "expire", 3), _row(1, "commit", 4)]
    assert [(row["change"], row["topic"], row["partitions"]) for row in removals(rows, SPAN)] == [
        ("expire", "orders", 2),
        ("tombstone", "orders", 1),
    ]


def test_a_return_has_the_removed_and_the_committed_offset() -> None:
    rows = [_row(-5, "tombstone", previous_offset=40), _row(3, "commit", min_offset=50)]
    (found,) = returns(rows, SPAN)
    assert (found["topic"], found["partition"], found["from_offset"], found["to_offset"]) == ("orders", 0, 40, 50)


def test_a_first_commit_is_no_return() -> None:
    assert returns([_row(1, "commit", min_offset=1)], SPAN) == []
    # the removal is of another partition
    assert returns([_row(1, "expire", previous_offset=4), _row(2, "commit", 1, min_offset=1)], SPAN) == []
    # what was removed is unknown
    assert returns([_row(1, "expire"), _row(2, "commit", min_offset=1)], SPAN) == []


def test_a_return_outside_of_the_span_is_left_out() -> None:
    assert returns([_row(-9, "expire", previous_offset=4), _row(-2, "commit", min_offset=1)], SPAN) == []


def test_a_row_without_a_time_is_in_no_span() -> None:
    rows = [_row(1, "expire", previous_offset=4, at=None), _row(2, "rewind", min_offset=1, at=None)]
    assert (removals(rows, SPAN), returns(rows, SPAN)) == ([], [])
