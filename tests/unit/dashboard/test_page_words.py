"""Numbers, times, names and sentences of the pages."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dashboard.formatting.events import rebalance_words, reset_words
from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.quantities import age, count, duration, interval, plural, rate, share, short_count, window
from pipelines.dashboard.formatting.reasons import reasons
from pipelines.dashboard.formatting.statuses import STATUSES, status_words
from pipelines.dashboard.formatting.times import clock, field_time, full, iso, since, until
from pipelines.dashboard.pages.group.group_tabs import read_command

NOON = datetime(2026, 3, 1, 12, 0, 5, 250_000, UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0, "0 s"),
        (0.04, "0.04 s"),
        (0.4, "0.4 s"),
        (9.96, "9.96 s"),
        (12.3, "12 s"),
        (59.7, "1 min"),
        (60, "1 min"),
        (250, "4 min 10 s"),
        (3_600, "1 h"),
        (18_720, "5 h 12 min"),
        (604_799, "6 d 23 h"),
        (864_000_000, "10,000 d"),
        (-30, "−30 s"),
    ],
)
def test_durations_have_at_most_two_units(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(0, 1e9))
def test_a_duration_is_within_a_unit_of_its_value(seconds: float) -> None:
    sizes = {"d": 86_400, "h": 3_600, "min": 60, "s": 1}
    parts = duration(seconds).replace(",", "").split()
    shown = sum(float(number) * sizes[unit] for number, unit in zip(parts[::2], parts[1::2], strict=True))
    # the smaller of the two units
    assert abs(shown - seconds) <= {"d": 3_600, "h": 60, "min": 1, "s": 0.5}[parts[1]]


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (None, 4, ""),
        (0, 0.5, "0–0.5 s"),
        (234, 264, "3 min 54 s–4 min 24 s"),
        (60, 240, "1–4 min"),
        (46_800, 54_000, "13–15 h"),
        (1.0, 119, "1 s–1 min 59 s"),
        (50_400, 50_460, ""),
        (13_800, 14_040, ""),
    ],
)
def test_bounds_are_written_as_ages(low: float | None, high: float, text: str) -> None:
    assert interval(low, high) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0 / s"),
        (1_200, "+1,200 / s"),
        (12_000, "+12 k / s"),
        (-2.5, "−2.5 / s"),
        (0.5, "+30 / min"),
        (1e-4, "+0.36 / h"),
    ],
)
def test_rates_have_a_sign_and_the_unit_in_which_they_are_legible(value: float | None, text: str) -> None:
    assert rate(value) == text


@pytest.mark.parametrize(
    ("least", "most", "text"),
    [(720, 720, "12 min"), (700, 730, "12 min"), (470, 905, "8–15 min"), (61, 75, "1 min 15 s"), (3_600, 3_600, "1 h")],
)
def test_windows_of_trends(least: float, most: float, text: str) -> None:
    assert window(least, most) == text


def test_counts() -> None:
    assert (count(None), count(25_862), count(-3)) == ("–", "25,862", "-3")
    assert (short_count(950), short_count(20_000), short_count(1_250_000), short_count(0.02)) == ("950", "20 k", "1.25 M", "0.02")
    assert (plural(1, "member"), plural(1_200, "member"), plural(2, "entry", "entries")) == (
        "1 member",
        "1,200 members",
        "2 entries",
    )
    assert share(0.125) == "12.5 %"


def test_times_are_of_the_day_unless_it_is_another() -> None:
    assert clock(NOON, NOON + timedelta(hours=11)) == "12:00:05"
    assert clock(NOON, NOON + timedelta(hours=12)) == "1 Mar 12:00"
    assert clock(NOON, NOON + timedelta(days=365)) == "1 Mar 2026 12:00"
    assert (full(NOON), iso(NOON)) == ("1 Mar 2026, 12:00:05", "2026-03-01T12:00:05.250Z")
    assert since(NOON, NOON + timedelta(seconds=484)) == "8 min 4 s ago"
    assert until(NOON, NOON - timedelta(hours=5)) == "in 5 h"
    assert until(NOON, NOON + timedelta(minutes=5)) == "due 5 min ago"


def test_an_event_is_never_in_the_future() -> None:
    """The clocks of a broker and of the job differ, and a page is of its sample, after which the group may have committed."""
    assert since(NOON, NOON - timedelta(seconds=25)) == "just now"


@pytest.mark.parametrize(
    ("seconds", "high", "text"), [(60, 70, "1 min"), (60, None, "≥ 1 min"), (0, 0.1, "0 s"), (0, None, "0 s"), (None, None, "–")]
)
def test_an_age_without_an_upper_bound_is_at_least_so_great(seconds: float | None, high: float | None, text: str) -> None:
    assert age({"lag_seconds": seconds, "lag_seconds_high": high}) == text


def test_a_time_to_edit_is_not_before_the_one_that_is_shown() -> None:
    assert field_time(NOON) == "2026-03-01 12:00:06"
    assert field_time(NOON.replace(microsecond=0)) == "2026-03-01 12:00:05"


def test_invisible_characters_of_names_are_shown() -> None:
    assert visible("orders\u202e\x00\n") == "orders\\u202e\\u0000\\u000a"
    assert visible("größe 数据 <b>") == "größe 数据 <b>"
    assert visible("x" * 65_536) == f"{'x' * 100} … {'x' * 10} (65,536 characters)"
    assert (visible(""), visible("  \u3000"), visible("a b")) == ("(empty)", "\\u0020\\u0020\\u3000", "a b")


def test_every_status_has_a_word_a_shape_and_a_tone() -> None:
    assert all(words.shape and words.tone in ("bad", "warn", "ok", "unknown") for words in STATUSES.values())
    assert [words.rank for words in STATUSES.values()] == sorted(words.rank for words in STATUSES.values())
    assert status_words(None).word == status_words("LATER").word == "no status"


def finding(rule: str, partition: int = 0, **values: object) -> dict[str, object]:
    """A finding of layout 1.2, without the fields that were added later."""
    empty = dict.fromkeys(("window_rows", "window_seconds", "from_offset", "to_offset", "by"))
    return {"rule": rule, "status": "WARN", "topic": "orders", "partition": partition, "detail": "detail", **empty, **values}


def test_findings_of_one_rule_are_one_reason() -> None:
    found = reasons([finding("stopped", 0), finding("skew", 2), finding("stopped", 1)], NOON)
    assert [(reason["rule"], reason["partitions"]) for reason in found] == [("stopped", 2), ("skew", 1)]


def test_a_symptom_is_part_of_its_cause() -> None:
    (reason,) = reasons([finding("skew", status="WARN"), finding("stopped", status="STOP")], NOON)
    assert (reason["rule"], reason["status"]) == ("stopped", "STOP")
    assert [symptom["rule"] for symptom in reason["symptoms"]] == ["skew"]


def test_findings_of_earlier_layouts_have_the_names_and_sentences_of_this_one() -> None:
    (reason,) = reasons([finding("burrow_2", status="STOP")], NOON)
    assert (reason["rule"], reason["sentence"], reason["since"]) == ("stopped", "No commits on orders-0.", None)


def rebalance(**values: object) -> dict[str, object]:
    row = {"from_generation": 16, "to_generation": 17, "trigger": "member_left", "outcome": "completed", "members_joined": 0}
    return {**row, "members_left": 1, "partitions_moved": 2, "seconds_without_owner": 192.0, **values}


def test_rebalances_in_words() -> None:
    assert rebalance_words(rebalance(), [], ["w2"]) == (
        "Rebalance 16 → 17: w2 left or timed out; 2 partitions moved, 3 min 12 s without an owner"
    )
    assert rebalance_words(rebalance(members_left=9), [], []) == (
        "Rebalance 16 → 17: 9 members left or timed out; 2 partitions moved, 3 min 12 s without an owner"
    )
    first = rebalance(from_generation=None, to_generation=1, members_left=None, trigger="unknown", partitions_moved=0)
    assert rebalance_words(first, [], []) == "Rebalance 1: no partition moved"
    # polls know no generations of classic groups, and no times without an owner
    polled = rebalance(from_generation=None, to_generation=None, seconds_without_owner=None)
    assert rebalance_words(polled, [], ["w2"]) == "Rebalance: w2 left or timed out; 2 partitions moved"
    assert rebalance_words({**polled, "from_generation": 16}, [], ["w2"]) == rebalance_words(polled, [], ["w2"])


def test_resets_in_words() -> None:
    row: dict[str, Any] = {"topic": "orders", "partition": 1, "from_offset": 950, "to_offset": 20, "from_is_least": False}
    row |= {"direction": "back", "reset_by": "admin"}
    assert reset_words(row, 1) == "Reset of orders-1 from 950 to 20 (−930) by an administrator"
    least = {**row, "from_is_least": True, "reset_by": "unknown"}
    assert reset_words(least, 1) == "Reset of orders-1 from 950 or later to 20 (−930 at least) by an unknown client"
    assert reset_words(row, 3) == "Reset of 3 partitions of orders by an administrator, back"


def test_the_command_for_the_next_record_quotes_hostile_names() -> None:
    assert read_command("orders", 3, 42) == (
        "kafka-console-consumer.sh --bootstrap-server BROKER:9092 --topic=orders --partition 3 --offset 42 --max-messages 1"
    )
    assert "'--topic=a; reboot'" in read_command("a; reboot", 0, 0)
