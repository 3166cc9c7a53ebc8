"""Sentences about findings: what, since when, who, what follows, the next step. One wording for every reader."""

from datetime import UTC, datetime
from typing import Any

import pytest

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import BURROW_RULES, GROUP_RULES, Finding, Status, lag_reason, rule_label, text_of
from coordinator_core.health.finding_phrases import clock, count
from coordinator_core.health.finding_text import TEXTS, with_text
from coordinator_core.health.timed_text import marked


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


AT_MS = ms("2026-11-23T12:00")
SINCE_MS = ms("2026-11-23T10:50")
BILLING_1: dict[str, Any] = {"client_id": "billing-1", "member_host": "/10.0.0.7", "ownership": "member"}


def finding(rule: str, partition: int | None = 3, status: Status = Status.WARN, topic: str = "orders", **values: Any) -> Finding:
    where = None if partition is None else TopicPartition(topic, partition)
    return Finding(rule, status, where, since_ms=SINCE_MS)._replace(**values)


def stopped(partition: int = 3, **values: Any) -> Finding:
    return finding("stopped", partition, Status.STOP, **{"amount": 68_358, **BILLING_1, **values})


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ([stopped()], "No commits on orders-3 since 10:50 UTC; billing-1 on 10.0.0.7 owns it; 68,358 records wait."),
        (
            [stopped(1, amount=1), stopped(2, amount=0)],
            "No commits on orders-1 and orders-2 since 10:50 UTC; billing-1 on 10.0.0.7 owns them; 1 record waits.",
        ),
        (
            [stopped(n, since_ms=SINCE_MS + 60_000 * n, client_id=f"w{n}", amount=500_000) for n in range(3)],
            "No commits on 3 partitions (orders-0 among them), the first one since 10:50 UTC; "
            "3 members (w0 on 10.0.0.7 among them) own them; 1.5 million records wait.",
        ),
        (
            [stopped(client_id=None, member_host=None, ownership="no_members")],
            "No commits on orders-3 since 10:50 UTC; the group has no members; 68,358 records wait.",
        ),
        (
            [stopped(client_id=None, member_host=None, ownership="unowned")],
            "No commits on orders-3 since 10:50 UTC; no member owns it; 68,358 records wait.",
        ),
        (
            [stopped(1), stopped(2, client_id=None, member_host=None, ownership="unowned")],
            "No commits on orders-1 and orders-2 since 10:50 UTC; no member owns 1 of them, "
            "billing-1 on 10.0.0.7 owns the others; 136,716 records wait.",
        ),
        ([stopped(client_id=None, ownership=None)], "No commits on orders-3 since 10:50 UTC; 68,358 records wait."),
        (
            [finding("stalled", amount=9, **BILLING_1)],
            "Commits on orders-3 repeat the same offset since 10:50 UTC; billing-1 on 10.0.0.7 owns it; 9 records wait.",
        ),
        (
            [finding("went_back", from_offset=950, to_offset=20, amount=930)],
            "The position of orders-3 went back from 950 to 20 at 10:50 UTC and has not reached its earlier offset again; "
            "930 records wait.",
        ),
        (
            [finding("hanging_transaction", transactional_id="shop-tx-1", amount=40, **BILLING_1)],
            "A transaction of shop-tx-1, open since 10:50 UTC, blocks orders-3; billing-1 on 10.0.0.7 owns it; 40 records wait.",
        ),
        ([finding("hanging_transaction", since_ms=None)], "A transaction blocks orders-3."),
        (
            [finding("hanging_transaction", n, since_ms=SINCE_MS - 60_000 * n, transactional_id=f"t{n}") for n in (1, 2)],
            "Transactions of t1 and t2, the first one open since 10:48 UTC, block orders-1 and orders-2.",
        ),
        (
            [finding("reset", by="admin", from_offset=950, to_offset=20), finding("reset", 4, by="admin")],
            "An administrator moved orders-3 from 950 to 20 at 10:50 UTC, and 1 more offset.",
        ),
        (
            [finding("beyond_end", amount=1, **BILLING_1)],
            "The committed offset of orders-3 is beyond the log end by 1 offset; billing-1 on 10.0.0.7 owns it.",
        ),
        (
            [finding("beyond_end", 1, amount=48), finding("beyond_end", 2, amount=3)],
            "The committed offsets of orders-1 and orders-2 are beyond the log end by up to 48 offsets.",
        ),
        ([finding("rebalance_storm", None, window_rows=7)], "7 rebalances since 10:50 UTC."),
        (
            [finding("unknown", since_ms=None, reason="topic_authorization_failed")],
            "The lag of orders-3 is unknown: the job may not describe the topic.",
        ),
        (
            [finding("unknown", None, reason="catching_up", since_ms=ms("2026-11-22T17:22"), amount=1_200_000)],
            "Catching up: commits are known until 22 Nov, 17:22 UTC, 1.2 million records are still unread.",
        ),
        ([finding("of_a_later_version", detail="it broke")], "It broke."),
        ([finding("burrow_2", status=Status.STOP)], "No commits on orders-3 since 10:50 UTC."),
    ],
)
def test_what_was_found(found: list[Finding], text: str) -> None:
    assert text_of(found, AT_MS).detail == text


def test_what_follows_and_the_next_step() -> None:
    with_deadline = stopped(due_ms=ms("2026-11-23T14:20"))
    assert text_of([with_deadline], AT_MS)[1:] == (
        "Retention deletes unread records from 14:20 UTC on.",
        "Check the log and the threads of billing-1 on 10.0.0.7, and restart it if processing hangs.",
    )
    abandoned = stopped(client_id=None, member_host=None, ownership="no_members", due_ms=AT_MS - 1)
    assert text_of([abandoned], AT_MS)[1:] == (
        "Retention deletes unread records now.",
        "Start a consumer of the group, or delete the group if it is no longer needed.",
    )
    filled = with_text(stopped(), AT_MS)
    assert (filled.consequence, filled.detail[:10]) == ("The lag grows until the group reads again.", "No commits")


def test_every_rule_with_a_defect_has_words() -> None:
    defects = {rule.name for rule in BURROW_RULES if rule.status is not Status.OK}
    assert set(TEXTS) == defects | {rule.name for rule in GROUP_RULES}
    for rule in TEXTS:
        text = text_of([finding(rule, from_offset=9, to_offset=5)], AT_MS)
        assert text.detail.endswith("."), rule
        assert "None" not in text.detail, rule
        if rule != "unknown":
            assert text.consequence, rule
            assert text.next_step, rule


def test_names_of_clients_are_visible_and_short() -> None:
    hostile = stopped(topic="a\u202eb", client_id="x" * 200, member_host="\x1b[31m")
    text = text_of([hostile], AT_MS).detail
    assert "\\u202e" in text
    assert "\\u001b" in text
    assert "(200 characters)" in text


def test_times_have_a_date_if_it_is_another_one() -> None:
    for days, text in ((0, "10:50 UTC"), (1, "23 Nov, 10:50 UTC"), (365, "23 Nov 2026, 10:50 UTC")):
        assert clock(SINCE_MS, AT_MS + days * 86_400_000) == marked(text, SINCE_MS)
    assert (count(999_999), count(1_200_000)) == ("999,999", "1.2 million")


def test_names_of_rules_have_the_number_of_burrow_as_a_suffix() -> None:
    assert [rule_label(rule) for rule in ("stopped", "burrow_5", "rebalance_storm", None)] == [
        "stopped, Burrow rule 2",
        "stalled, Burrow rule 5",
        "rebalance storm",
        "",
    ]
    assert (lag_reason(None), lag_reason("no_commit"), lag_reason("of_later")) == (
        "",
        "the group has not committed an offset",
        "of later",
    )
