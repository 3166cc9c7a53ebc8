"""The worked examples of chapter 7.1 of "Understanding Kafka" (深入理解Kafka), before and after the group changes."""

import pytest
from consumer_groups import ConsumerGroup, assigned

from coordinator_core.assignors import (
    Assignor,
    BroadcastAssignor,
    Cluster,
    CooperativeStickyAssignor,
    PartitionInfo,
    RackAwareAssignor,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    Subscription,
)

STICKY = [StickyAssignor(), CooperativeStickyAssignor()]


def group_of(assignor: Assignor, topics: dict[str, int], **subscriptions: str) -> ConsumerGroup:
    group = ConsumerGroup(assignor, topics)
    for member, subscribed in subscriptions.items():
        group.join(member, *subscribed.split())
    return group


def settled(group: ConsumerGroup) -> dict[str, str]:
    """The partitions of each member in the end: after one rebalance of an eager group, after up to two of a cooperative one."""
    group.rebalance()
    return group.rebalance()


def test_range_shares_each_topic_evenly_if_it_divides() -> None:
    group = group_of(RangeAssignor(), {"t0": 4, "t1": 4}, C0="t0 t1", C1="t0 t1")

    assert group.rebalance() == {"C0": "t0-0 t0-1 t1-0 t1-1", "C1": "t0-2 t0-3 t1-2 t1-3"}


def test_range_gives_what_is_left_over_of_each_topic_to_the_same_member() -> None:
    group = group_of(RangeAssignor(), {"t0": 3, "t1": 3}, C0="t0 t1", C1="t0 t1")

    assert group.rebalance() == {"C0": "t0-0 t0-1 t1-0 t1-1", "C1": "t0-2 t1-2"}


@pytest.mark.parametrize(
    ("members", "shares"),
    [
        (1, ["t-0 t-1 t-2 t-3 t-4 t-5 t-6"]),
        (2, ["t-0 t-1 t-2 t-3", "t-4 t-5 t-6"]),
        (3, ["t-0 t-1 t-2", "t-3 t-4", "t-5 t-6"]),
        (8, ["t-0", "t-1", "t-2", "t-3", "t-4", "t-5", "t-6", ""]),
    ],
)
def test_range_as_a_group_of_chapter_3_grows(members: int, shares: list[str]) -> None:
    group = ConsumerGroup(RangeAssignor(), {"t": 7})
    for number in range(members):
        group.join(f"C{number}", "t")

    assert list(group.rebalance().values()) == shares


def test_round_robin_shares_evenly_if_subscriptions_are_equal() -> None:
    group = group_of(RoundRobinAssignor(), {"t0": 3, "t1": 3}, C0="t0 t1", C1="t0 t1")

    assert group.rebalance() == {"C0": "t0-0 t0-2 t1-1", "C1": "t0-1 t1-0 t1-2"}


UNEQUAL = {"C0": "t0", "C1": "t0 t1", "C2": "t0 t1 t2"}


def test_round_robin_is_not_the_best_if_subscriptions_differ() -> None:
    group = group_of(RoundRobinAssignor(), {"t0": 1, "t1": 2, "t2": 3}, **UNEQUAL)

    assert group.rebalance() == {"C0": "t0-0", "C1": "t1-0", "C2": "t1-1 t2-0 t2-1 t2-2"}

    group.leave("C0")
    assert group.rebalance() == {"C1": "t0-0 t1-1", "C2": "t1-0 t2-0 t2-1 t2-2"}


@pytest.mark.parametrize("assignor", STICKY, ids=lambda each: each.name)
def test_sticky_is_the_best_if_subscriptions_differ(assignor: Assignor) -> None:
    group = group_of(assignor, {"t0": 1, "t1": 2, "t2": 3}, **UNEQUAL)

    assert group.rebalance() == {"C0": "t0-0", "C1": "t1-0 t1-1", "C2": "t2-0 t2-1 t2-2"}

    group.leave("C0")
    assert settled(group) == {"C1": "t0-0 t1-0 t1-1", "C2": "t2-0 t2-1 t2-2"}


FOUR_TOPICS = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
EQUAL = dict.fromkeys(("C0", "C1", "C2"), "t0 t1 t2 t3")
FIRST_ROUND = {"C0": "t0-0 t1-1 t3-0", "C1": "t0-1 t2-0 t3-1", "C2": "t1-0 t2-1"}


def test_round_robin_begins_anew_when_a_member_leaves() -> None:
    group = group_of(RoundRobinAssignor(), FOUR_TOPICS, **EQUAL)
    assert group.rebalance() == FIRST_ROUND

    group.leave("C1")
    assert group.rebalance() == {"C0": "t0-0 t1-0 t2-0 t3-0", "C2": "t0-1 t1-1 t2-1 t3-1"}


def test_sticky_shares_out_no_more_than_the_burden_of_the_member_that_left() -> None:
    """As clients of the book's time did it; the next test shows the behaviour since KAFKA-9987."""
    group = group_of(StickyAssignor(equals_apart=False), FOUR_TOPICS, **EQUAL)
    assert group.rebalance() == FIRST_ROUND

    group.leave("C1")
    assert group.rebalance() == {"C0": "t0-0 t1-1 t2-0 t3-0", "C2": "t0-1 t1-0 t2-1 t3-1"}


@pytest.mark.parametrize("assignor", STICKY, ids=lambda each: each.name)
def test_sticky_shares_that_burden_out_in_turn_today(assignor: Assignor) -> None:
    group = group_of(assignor, FOUR_TOPICS, **EQUAL)
    assert group.rebalance() == FIRST_ROUND

    group.leave("C1")
    assert group.rebalance() == {"C0": "t0-0 t0-1 t1-1 t3-0", "C2": "t1-0 t2-0 t2-1 t3-1"}


@pytest.mark.parametrize("assignor", STICKY, ids=lambda each: each.name)
def test_sticky_after_a_subscription_changes(assignor: Assignor) -> None:
    group = group_of(assignor, {"t0": 1, "t1": 2, "t2": 3}, **UNEQUAL)
    group.rebalance()

    group.subscribe("C0", "t0", "t2")
    assert settled(group) == {"C0": "t0-0 t2-0", "C1": "t1-0 t1-1", "C2": "t2-1 t2-2"}


def test_random_gives_each_partition_to_the_drawn_member() -> None:
    draws = iter([1, 0, 1, 1, 0, 0])
    group = group_of(RandomAssignor(lambda _count: next(draws)), {"t0": 3, "t1": 3}, C0="t0 t1", C1="t0 t1")

    assert group.rebalance() == {"C0": "t0-1 t1-1 t1-2", "C1": "t0-0 t0-2 t1-0"}


def test_random_draws_among_the_subscribers_of_the_topic() -> None:
    counts = []

    def last(count: int) -> int:
        counts.append(count)
        return count - 1

    group = group_of(RandomAssignor(last), {"t0": 1, "t1": 2, "t2": 3}, **UNEQUAL)

    assert group.rebalance() == {"C0": "", "C1": "", "C2": "t0-0 t1-0 t1-1 t2-0 t2-1 t2-2"}
    assert counts == [3, 2, 2, 1, 1, 1]


def test_broadcast_gives_everything_to_every_member() -> None:
    everything = "t-0 t-1 t-2 t-3 t-4 t-5 t-6"
    group = group_of(BroadcastAssignor(), {"t": 7}, C0="t", C1="t", C2="t")
    assert group.rebalance() == {"C0": everything, "C1": everything, "C2": everything}

    group.leave("C1")
    assert group.rebalance() == {"C0": everything, "C2": everything}


def test_broadcast_gives_nothing_of_topics_that_a_member_does_not_want() -> None:
    group = group_of(BroadcastAssignor(), {"t0": 1, "t1": 2}, C0="t0", C1="t1", C2="t0 t1 unknown")

    assert group.rebalance() == {"C0": "t0-0", "C1": "t1-0 t1-1", "C2": "t0-0 t1-0 t1-1"}


#: Figure 7-1: broker1 leads some partitions and is in rack1, broker2 leads the others and is in rack2.
TWO_RACKS = Cluster({"t": tuple(PartitionInfo(number, f"rack{2 - number % 2}") for number in range(4))})


def test_rack_aware_reads_from_leaders_in_the_same_rack() -> None:
    group = ConsumerGroup(RackAwareAssignor(), TWO_RACKS)
    group.join("consumer1", "t", assignor=RackAwareAssignor("rack1"))
    group.join("consumer2", "t", assignor=RackAwareAssignor("rack2"))
    assert group.rebalance() == {"consumer1": "t-1 t-3", "consumer2": "t-0 t-2"}

    group.leave("consumer2")
    assert group.rebalance() == {"consumer1": "t-0 t-1 t-2 t-3"}


def test_an_assignor_that_knows_no_racks_reads_across_them() -> None:
    subscriptions = {"consumer1": Subscription(("t",), rack_id="rack1"), "consumer2": Subscription(("t",), rack_id="rack2")}

    assert assigned(RoundRobinAssignor(), TWO_RACKS, subscriptions) == {"consumer1": "t-0 t-2", "consumer2": "t-1 t-3"}
    assert assigned(RackAwareAssignor(), TWO_RACKS, subscriptions) == {"consumer1": "t-1 t-3", "consumer2": "t-0 t-2"}


def test_rack_aware_shares_out_partitions_near_to_no_member() -> None:
    metadata = Cluster({"t": tuple(PartitionInfo(number, rack) for number, rack in enumerate(["a", "a", "c", None, "a"]))})
    subscriptions = {"one": Subscription(("t",), b"a"), "two": Subscription(("t",), b"b"), "three": Subscription(("t",))}

    assert assigned(RackAwareAssignor(), metadata, subscriptions) == {"one": "t-0 t-1 t-4", "two": "t-3", "three": "t-2"}
