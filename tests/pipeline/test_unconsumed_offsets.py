"""Offsets of topics to which no member subscribes, and of partitions that a topic does not have: facts, not defects."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from log_builder import member
from shop_pages import ShopPages
from status_story import Story

from coordinator_core.codec.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from coordinator_core.codec.messages.modern import (
    PartitionMetadataValue,
    TargetAssignmentMetadataValue,
    TopicMetadata,
    TopicPartitions,
)
from coordinator_core.codec.records import Record
from pipelines.alerts.tables import RuleTables
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.timestamps import to_ms

EU = "orders-eu"
IDS = {"orders": UUID(int=1), EU: UUID(int=2)}
BOTH = ("orders", EU)
#: Second of the end of the subscription, and of the newest sample.
ENDED, NOW = 240, 1500


def classic(story: Story, topics: Iterable[str]) -> None:
    story.log.group([member(topics=tuple(topics))], group="billing", generation=5 + len(story.log.records))


def unreadable(story: Story, _topics: Iterable[str]) -> None:
    story.log.group([member(topics=("orders",)), member("m2", subscription=b"?")], group="billing", generation=9)


def connect(story: Story, _topics: Iterable[str]) -> None:
    story.log.group([member(topics=("orders",))], group="billing", protocol_type="connect", generation=9)


def nothing(story: Story, _topics: Iterable[str]) -> None:
    """Members that subscribe to no topic: what they read is assigned by other means."""
    story.log.group([member(topics=())], group="billing", generation=9)


def empty(story: Story, _topics: Iterable[str]) -> None:
    story.log.group((), group="billing", generation=9, timestamp=story.log.now_ms)


def simple(_story: Story, _topics: Iterable[str]) -> None:
    """No group record at all."""


def consumer(
    story: Story, topics: Iterable[str], *, names: Iterable[str] | None = None, regex: str | None = None, state: int = 0
) -> None:
    """A group of KIP-848 with one member, which is assigned partition 0 of these topics."""
    metadata = ConsumerGroupMemberMetadataValue(
        None, None, "client", "/127.0.0.1", tuple(topics if names is None else names), regex, classic_member_metadata=None
    )
    epoch = len(story.log.records) + 1
    assigned = tuple(TopicPartitions(IDS[topic], (0,)) for topic in topics)
    story.log.modern(4, PartitionMetadataValue(tuple(TopicMetadata(IDS[topic], topic, 1) for topic in BOTH)), group="billing")
    story.log.modern(5, metadata, group="billing")
    story.log.modern(3, ConsumerGroupMetadataValue(epoch), group="billing")
    story.log.modern(6, TargetAssignmentMetadataValue(epoch), group="billing")
    story.log.modern(8, ConsumerGroupCurrentMemberAssignmentValue(epoch, epoch - 1, state, assigned), group="billing")


def resolved(story: Story, regex: str, topics: Iterable[str]) -> None:
    value = ConsumerGroupRegularExpressionValue(tuple(topics), 1, story.log.now_ms)
    story.log.append(Record(16, ConsumerGroupRegularExpressionKey("billing", regex), value, 0))


def by_regex(story: Story, topics: Iterable[str]) -> None:
    resolved(story, "ord.*", topics)
    consumer(story, topics, names=(), regex="ord.*")


def by_unresolved_regex(story: Story, topics: Iterable[str]) -> None:
    consumer(story, topics, names=("orders",), regex="ord.*")


Join = Callable[[Story, Iterable[str]], None]


def told(root: Path, join: Join, after: Join | None = None, topics: Iterable[str] = ("orders",), **more: Any) -> Story:
    """A group that reads both topics until ENDED, and `orders` until NOW; both topics go on all the time."""
    story = Story(str(root), **more)
    for second in range(0, NOW + 1, 60):
        story.at(second)
        if second in (0, ENDED):
            (join if second == 0 else after or join)(story, BOTH if second == 0 else topics)
        for topic in BOTH:
            story.end(100 + second, topic=topic)
            if topic == "orders" or second < ENDED:
                story.commit(90 + second, topic=topic)
        if second > NOW - 300:
            story.batch()
        if second in (0, 120, ENDED, NOW):
            story.at(second + 1).sample()
    return story


def status(story: Story) -> dict[str, Any]:
    return story.at(NOW + 2).sample() or Snapshot.open(story.root).query("SELECT * FROM group_status").to_pylist()[0]


def facts(row: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(fact["fact"], fact["topic"], fact["partition"], fact["partitions"]) for fact in row["facts"]]


@pytest.mark.parametrize("join", [classic, consumer, by_regex])
def test_an_unsubscribed_topic_is_a_fact_and_no_defect(join: Join, tmp_path: Path) -> None:
    story = told(tmp_path, join)
    row = status(story)
    assert (row["status"], row["findings"], row["burrow_status"]) == ("OK", [], "ERR"), row
    assert (row["partitions"], row["max_lag_topic"]) == (2, EU), "lag is that of all committed offsets"
    assert facts(row) == [("not_subscribed", EU, 0, 1)]
    (fact,) = row["facts"]
    assert fact["since"] == story.at(ENDED).clock()
    # seven days after the last commit
    assert fact["due"] == story.at(ENDED - 60 + 7 * 86_400).clock()
    since, due = story.at(ENDED).clock(), fact["due"]
    assert fact["detail"] == (
        f"{EU}: not subscribed since {since:%H:%M} UTC; its offset expires on {due.day} {due:%b}, {due:%H:%M} UTC."
    )
    lag = Snapshot.open(story.root).query("SELECT topic, unconsumed FROM lag ORDER BY topic").to_pylist()
    assert lag == [{"topic": "orders", "unconsumed": None}, {"topic": EU, "unconsumed": "not_subscribed"}]
    story.restart()
    story.at(NOW + 60).sample()
    story.expect_same_from_histories(last=2)
    assert check(story.root) == []


@pytest.mark.parametrize("after", [unreadable, connect, nothing, empty, simple])
def test_what_is_not_known_is_not_claimed(after: Join, tmp_path: Path) -> None:
    row = status(told(tmp_path, simple if after is simple else classic, after))
    assert (row["status"], row["rule"], row["topic"], row["facts"]) == ("STOP", "stopped", EU, [])


def test_a_regular_expression_that_is_not_resolved_may_mean_any_topic(tmp_path: Path) -> None:
    story = told(tmp_path, consumer, by_unresolved_regex)
    row = status(story)
    assert (row["status"], row["topic"], row["facts"]) == ("STOP", EU, [])
    resolved(story, "ord.*", ("orders",))
    row = story.at(NOW + 60).sample()
    assert (row["status"], facts(row)) == ("OK", [("not_subscribed", EU, 0, 1)])
    story.expect_same_from_histories()


def test_a_topic_of_which_a_member_has_partitions_counts(tmp_path: Path) -> None:
    """A member that still has to revoke them, or to which an assignor of its own gives them."""

    def keeps(story: Story, _topics: Iterable[str]) -> None:
        consumer(story, BOTH, names=("orders",), state=1)

    row = status(told(tmp_path, consumer, keeps))
    assert (row["status"], row["topic"], row["facts"]) == ("STOP", EU, [])


def test_a_rebalance_of_later_changes_nothing(tmp_path: Path) -> None:
    """A group that reconciles: a subscription that ended long before is no part of that; one that ended just now may be."""
    story = told(tmp_path, consumer)
    assert status(story)["status"] == "OK"
    consumer(story.at(NOW + 10), ("orders",), state=2)
    row = story.at(NOW + 11).sample()
    assert (row["status"], facts(row)) == ("OK", [("not_subscribed", EU, 0, 1)])
    story.expect_same_from_histories()
    state = Snapshot.open(story.root).query("SELECT state FROM groups")["state"].to_pylist()
    assert state == ["Reconciling"]


def test_a_topic_that_is_subscribed_again_counts_again(tmp_path: Path) -> None:
    story = told(tmp_path, classic)
    assert status(story)["status"] == "OK"
    classic(story.at(NOW + 5), BOTH)
    row = story.at(NOW + 6).sample()
    assert (row["status"], row["topic"], row["facts"]) == ("STOP", EU, [])
    story.expect_same_from_histories()


def test_the_end_of_a_subscription_may_be_unknown(tmp_path: Path) -> None:
    """The tables know the group since after it."""
    story = Story(str(tmp_path))
    classic(story, ("orders",))
    for second in range(0, 901, 60):
        story.at(second).end(100 + second).end(100 + second, topic=EU).commit(90 + second)
        if not second:
            story.commit(50, topic=EU)
        story.batch()
        if second % 300 == 0:
            row = story.at(second + 1).sample()
    assert row["status"] == "OK"
    (fact,) = row["facts"]
    assert fact["since"] is None
    assert fact["detail"].startswith(f"{EU}: not subscribed; its offset expires on ")
    story.expect_same_from_histories()


def test_a_brokers_era_without_the_rule_expires_nothing(tmp_path: Path) -> None:
    """Before 2.4 the offsets of a group with members do not expire."""
    (fact,) = status(told(tmp_path, classic, era="2"))["facts"]
    assert fact["due"] is None
    assert fact["detail"].endswith("UTC.")
    assert "expire" not in fact["detail"]


def test_a_partition_that_the_topic_lacks_is_a_fact_of_a_group_with_members(tmp_path: Path) -> None:
    story = Story(str(tmp_path))
    classic(story, BOTH)
    for second in (0, 60):
        story.at(second).end(100 + second).end(100 + second, topic=EU)
        for topic in BOTH:
            story.commit(90 + second, topic=topic)
        for partition in (7, 8):
            story.commit(5, partition)
        story.commit(5, 9, topic=EU)
        story.commit(5, 7, group="other").commit(5, group="other")
        row = story.at(second + 1).sample()
    assert (row["status"], row["findings"]) == ("OK", []), row
    assert facts(row) == [("unknown_partition", "orders", None, 2), ("unknown_partition", EU, 9, 1)]
    assert [fact["detail"] for fact in row["facts"]] == [
        "orders: the topic does not have 2 partitions with offsets (orders-7 among them).",
        f"{EU}-9: the topic does not have this partition.",
    ]
    rows = Snapshot.open(story.root).query("SELECT status, rule, facts FROM group_status WHERE group_id = 'other'").to_pylist()
    assert rows == [{"status": "UNKNOWN", "rule": "unknown", "facts": []}]
    story.expect_same_from_histories()


def test_other_defects_of_the_group_remain(tmp_path: Path) -> None:
    story = told(tmp_path, classic)
    # silent for longer than the window of its commits, which begins at 0
    for second in range(NOW + 300, 2 * NOW + 301, 300):
        story.at(second).end(100 + second).end(100 + second, topic=EU)
        row = story.at(second + 1).sample()
    assert (row["status"], row["rule"], row["topic"]) == ("STOP", "stopped", "orders")
    assert [finding["topic"] for finding in row["findings"]] == ["orders"]
    assert facts(row) == [("not_subscribed", EU, 0, 1)]
    story.expect_same_from_histories()


def test_readers_agree(tmp_path: Path) -> None:
    root = str(tmp_path / "east")
    story = told(Path(root), classic)
    status(story)
    pages = ShopPages(root, clock=story.clock)
    detail = pages.json("groups/billing")["status"]["facts"][0]["detail"]
    assert detail.startswith(f"{EU}: not subscribed since")
    html = pages.html("groups/billing").text
    assert detail in html
    assert "STOP" not in html
    burrow = pages.at("/v3/kafka/east/consumer/billing/status").json()["status"]
    assert burrow["status"] == "ERR"
    assert [(each["topic"], each["status"]) for each in burrow["partitions"]] == [(EU, "STOP")]
    assert 'status="STOP"' not in pages.at("/metrics").text
    tables = RuleTables(Snapshot.open(root), to_ms(story.clock()), None)
    assert tables.lag["topic"].to_pylist() == ["orders"]
    assert tables.expiry["topic"].to_pylist() == ["orders"]
    assert tables.status["status"].to_pylist() == ["OK"]
