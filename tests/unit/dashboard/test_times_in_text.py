"""Times within sentences are elements of their own; names that only look like times are not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from markupsafe import escape

from coordinator_core.health.timed_text import marked, timed_text
from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.times_in_text import timed
from pipelines.dashboard.pages.group.group_events import stops
from pipelines.dashboard.pages.group.steady_syncs import without_sync_rows
from pipelines.runtime.timestamps import to_ms

NOON = datetime(2026, 3, 4, 12, 0, 5, tzinfo=UTC)
NAMES = ("10:50", "10:50 UTC", "3 Mar, 23:59 UTC", "2026-03-03 17:35", marked("10:50 UTC", 1), "<b>10:50</b>")


@pytest.mark.parametrize("name", NAMES)
def test_times_are_elements(name: str) -> None:
    sentence = f"No commits on {visible(name)} since {marked('10:49 UTC', to_ms(NOON))}; {visible(name)} owns it."
    shown = escape(visible(name))
    time = '<time datetime="2026-03-04T12:00:05Z">10:49 UTC</time>'
    assert timed(timed_text(sentence)) == f"No commits on {shown} since {time}; {shown} owns it."
    # a sentence that says nothing about its times has none
    assert timed(f"No commits since 10:49 UTC by {name}.") == escape(f"No commits since 10:49 UTC by {name}.")


@pytest.mark.parametrize("name", ["orders", *NAMES])
def test_events_with_times(name: str) -> None:
    offsets: list[dict[str, Any]] = [
        {
            "topic": name, "partition": partition, "committed_at": NOON, "committed_after": NOON - timedelta(seconds=30),
            "consumer_id": "", "lag": 5, "is_polled": True,
        }
        for partition in (0, 1)
    ]  # fmt: skip
    findings = [{"rule": "stopped", "topic": name, "partition": partition} for partition in (0, 1)]
    (stop,) = stops(offsets, findings, {}, NOON)
    assert times_of(stop["words"]) == [("11:59:35", to_ms(NOON) - 30_000), ("12:00:05", to_ms(NOON))]
    (stop,) = stops([{**each, "committed_after": None} for each in offsets[:1]], findings, {}, NOON)
    assert times_of(stop["words"]) == [("12:00:05", to_ms(NOON))]
    resets = [
        {
            "reset_at": NOON + timedelta(seconds=10 * number), "topic": name, "partition": 0, "from_offset": number,
            "to_offset": number + 1, "reset_by": "admin",
        }
        for number in range(12)
    ]  # fmt: skip
    rest, (sync,) = without_sync_rows(resets)
    assert rest == []
    assert times_of(sync["words"]) == [("12:01:55", to_ms(NOON) + 110_000)]


def times_of(text: Any) -> list[tuple[str, int]]:
    return [(text[each.start : each.end], each.ms) for each in text.times]
