"""Sentences know where their times are, and take no name for one, in whatever sentence it is and whatever it looks like."""

import pickle
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import BURROW_RULES, GROUP_RULES, Finding, OffsetSync, Status, Unconsumed, UnconsumedTopic, text_of
from coordinator_core.health.finding_phrases import clock
from coordinator_core.health.group_facts import Fact, fact_of, fact_text, sync_fact
from coordinator_core.health.status import Ownership
from coordinator_core.health.timed_text import TextTime, TimedText, marked, timed_text, with_marks


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


AT_MS = ms("2026-03-04T12:00:05")
SINCE_MS = ms("2026-03-04T10:50:07")
DUE_MS = ms("2026-03-05T09:30")
#: Names of groups, topics, clients and transactions. The last ones have the marks of times, and words of sentences.
NAMES = (
    "10:50",
    "10:50 UTC",
    "11:35:07",
    "3 Mar, 23:59 UTC",
    "2026-03-03 17:35",
    marked("10:50 UTC", SINCE_MS),
    "x: not subscribed since 10:50 UTC",
    "x: the topic does not have this partition 10:50 UTC",
    "(x among them); their offsets expire from 10:50 UTC on",
    "x are set by an admin client every 10 s since 10:50 UTC",
)
RULES = [rule.name for rule in (*BURROW_RULES, *GROUP_RULES) if rule.status is not Status.OK]
REASONS = (
    *(None, "offset_commit", "last_stable_offset_at_least", "catching_up", "stale_sample", "no_commit", "from_at_least"),
    "seen_by_polls",
)


def found(rule: str, name: str, number: int, **values: Any) -> list[Finding]:
    """Findings in which every name is this one."""
    first = Finding(
        rule, Status.WARN, TopicPartition(name, 0), since_ms=SINCE_MS, due_ms=DUE_MS, transactional_id=name, producer_id=7,
        client_id=name, member_host=name, amount=5, total=9, rate=2.5, window_rows=number, window_seconds=60.0, from_offset=9,
        to_offset=4, by="admin", detail=f"{name} is late",
    )._replace(**values)  # fmt: skip
    return [
        first._replace(
            partition=TopicPartition(f"{name}{each or ''}", each),
            since_ms=SINCE_MS + each * 60_000,
            transactional_id=f"{name}{each or ''}",
        )
        for each in range(number)
    ]


def times(text: str) -> list[tuple[str, int]]:
    """The times of a text, as they are printed, and what they mean."""
    assert isinstance(text, TimedText)
    return [(text[each.start : each.end], each.ms) for each in text.times]


def without_times(text: TimedText) -> str:
    ends = (0, *(each.end for each in text.times))
    return "".join(text[end : time.start] for end, time in zip(ends, text.times, strict=False)) + text[ends[-1] :]


@pytest.mark.parametrize("rule", [*RULES, "of_a_later_version"])
def test_a_name_is_never_a_time(rule: str) -> None:
    """With names like times a sentence has the times that it has with plain names."""
    for number, ownership, reason in product((1, 2, 3), Ownership, REASONS):
        plain = text_of(found(rule, "orders", number, ownership=ownership, reason=reason), AT_MS)
        for name in NAMES:
            hostile = text_of(found(rule, name, number, ownership=ownership, reason=reason), AT_MS)
            for text, expected in zip(hostile, plain, strict=True):
                assert times(text) == times(expected)
                assert "\ufdd0" not in text


@pytest.mark.parametrize("rule", RULES)
def test_every_time_of_a_sentence_is_known(rule: str) -> None:
    """What is left of a sentence without its times has none."""
    printed = 0
    for number, ownership, reason in product((1, 2, 3), Ownership, REASONS):
        for text in text_of(found(rule, "orders", number, ownership=ownership, reason=reason), AT_MS):
            assert "UTC" not in without_times(text)
            for shown, meant in times(text):
                assert timed_text(clock(meant, AT_MS)) == shown
                printed += 1
    assert printed or rule in ("beyond_end",)


def facts(name: str) -> list[tuple[Fact, str]]:
    """Facts of every kind, with the least number of times that each has."""
    partitions = (TopicPartition(name, 1), TopicPartition(name, 2))
    topics = [
        UnconsumedTopic(name, reason, number, 1, SINCE_MS, first, last)
        for reason in Unconsumed
        for number in (1, 3)
        for first, last in ((DUE_MS, DUE_MS), (DUE_MS, DUE_MS + 9 * 86_400_000), (SINCE_MS, SINCE_MS), (None, None))
    ]
    syncs = [
        OffsetSync(since, last, 10_000, named)
        for since in (SINCE_MS, None)
        for last in (SINCE_MS + 60_000, AT_MS - 1_000)
        for named in (partitions[:1], partitions, (*partitions, TopicPartition("other", 0)))
    ]
    made = [*(fact_of(each, AT_MS) for each in topics), *(sync_fact(each, AT_MS, SINCE_MS) for each in syncs)]
    return [(each, str(each.detail)) for each in made]


@pytest.mark.parametrize("name", ["orders", *NAMES])
def test_facts_of_a_table_have_their_times(name: str) -> None:
    """A table has the sentence of a fact without its times, and they are found again."""
    for (fact, stored), (plain, _) in zip(facts(name), facts("orders"), strict=True):
        assert times(fact.detail) == times(plain.detail)
        again = fact_text(str(fact.kind), fact.partitions, stored, AT_MS)
        assert again == fact.detail
        assert times(again) == times(fact.detail)
    assert sum(len(times(fact.detail)) for fact, _ in facts(name)) > 10
    assert times(fact_text("of_a_later_version", 1, f"{name} since 10:50 UTC", AT_MS)) == []


def test_marks() -> None:
    text = timed_text(f"between {marked('11:59', 1)} and {marked('12:00 UTC', 2)}: x")
    assert text == "between 11:59 and 12:00 UTC: x"
    assert text.times == (TextTime(8, 13, 1), TextTime(18, 27, 2))
    assert timed_text(with_marks(text)).times == text.times
    assert (with_marks("10:50"), timed_text("10:50").times) == ("10:50", ())
    assert pickle.loads(pickle.dumps(text)).times == text.times
    # a text that was cut or joined says nothing about times
    assert type(text[:5]) is type(f"{text}.") is str
