"""Marks of the slider of time."""

from datetime import UTC, datetime, timedelta

from pipelines.dashboard.history.span import span_until
from pipelines.dashboard.pages.group.time_marks import PLACES, marks

END = datetime(2026, 3, 4, 14, tzinfo=UTC)
SPAN = span_until(END, "10h")
#: The time that one place of the slider stands for.
PLACE = timedelta(hours=10) / PLACES


def test_events_of_one_place_are_one_mark_of_the_most_serious_kind() -> None:
    at = SPAN.start + 10 * PLACE
    found = marks([(at + PLACE / 2, "reset"), (at, "rebalance"), (at + PLACE / 3, "rebalance"), (at + PLACE, "alert")], SPAN)
    assert [(row["at"], row["kind"], row["words"]) for row in found] == [
        (at, "reset", "1 reset, 2 rebalances"),
        (at + PLACE, "alert", "1 transition of an alert"),
    ]


def test_any_number_of_events_is_at_most_a_mark_per_place() -> None:
    events = [(SPAN.start + timedelta(seconds=number), "rebalance") for number in range(36_001)]
    found = marks(events, SPAN)
    assert len(found) == PLACES
    assert sum(int(row["words"].split()[0].replace(",", "")) for row in found) == len(events)


def test_an_alert_after_the_last_sample_is_at_the_end() -> None:
    assert [row["kind"] for row in marks([(END + PLACE, "alert")], SPAN)] == ["alert"]
    assert marks([], SPAN) == []
