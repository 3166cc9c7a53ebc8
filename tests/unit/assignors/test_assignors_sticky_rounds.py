"""Cases of Kafka's sticky assignor tests in which a group rebalances more than once, eager and cooperative."""

import random

import pytest
from consumer_groups import ConsumerGroup
from sticky_subscriptions import improvement

from coordinator_core.assignors import (
    Assignor,
    Cluster,
    CooperativeStickyAssignor,
    StickyAssignor,
    Subscription,
    TopicPartition,
)

both = pytest.mark.parametrize("assignor", [StickyAssignor(), CooperativeStickyAssignor()], ids=lambda assignor: assignor.name)


def settle(group: ConsumerGroup) -> dict[str, frozenset[TopicPartition]]:
    """Rebalance until the group is stable, as often as Kafka's test allows, and check balance and ownership."""
    assert group.settle() <= 5
    subscribed = {name: Subscription(member.topics) for name, member in group.members.items()}
    assert improvement(group.metadata, subscribed, group.owned_partitions()) is None
    return group.owned_partitions()


def sizes(owned: dict[str, frozenset[TopicPartition]]) -> list[int]:
    return sorted(map(len, owned.values()))


@both
def test_topic_balance_after_reassignment(assignor: Assignor) -> None:
    """testTopicBalanceAfterReassignment"""
    group = ConsumerGroup(assignor, {"t1": 12, "t2": 12})

    def joined(*members: str) -> set[frozenset[int]]:
        for member in members:
            group.join(member, "t1", "t2")
        return {frozenset(sum(p.topic == topic for p in owned) for topic in ("t1", "t2")) for owned in settle(group).values()}

    assert joined("c1") == {frozenset([12])}
    assert joined("c2") == {frozenset([6])}
    assert joined("c3", "c4") == {frozenset([3])}
    group.leave("c1")
    group.leave("c2")
    assert joined() == {frozenset([6])}


@both
def test_where_round_robin_does_poorly(assignor: Assignor) -> None:
    """testPoorRoundRobinAssignmentScenario"""
    group = ConsumerGroup(assignor, {"t1": 2, "t2": 1, "t3": 2, "t4": 1, "t5": 2})
    for member, topics in {"c1": "t1 t2 t3 t4 t5", "c2": "t1 t3 t5", "c3": "t1 t3 t5", "c4": "t1 t2 t3 t4 t5"}.items():
        group.join(member, *topics.split())

    assert sizes(settle(group)) == [2, 2, 2, 2]


@both
def test_a_topic_is_added_and_another_removed(assignor: Assignor) -> None:
    """testAddRemoveTopicTwoConsumers"""
    group = ConsumerGroup(assignor, {"t": 3})
    group.join("c1", "t")
    group.join("c2", "t")
    first = settle(group)
    assert sizes(first) == [1, 2]

    group.metadata = Cluster.of_counts({"t": 3, "t2": 3})
    for member in ("c1", "c2"):
        group.subscribe(member, "t", "t2")
    second = settle(group)
    assert sizes(second) == [3, 3]
    assert all(first[member] <= second[member] for member in first)

    group.metadata = Cluster.of_counts({"t2": 3})
    for member in ("c1", "c2"):
        group.subscribe(member, "t2")
    third = settle(group)
    assert sizes(third) == [1, 2]
    assert all(third[member] <= second[member] for member in first)


@both
def test_one_of_many_unequal_members_leaves(assignor: Assignor) -> None:
    """testReassignmentAfterOneConsumerLeaves"""
    group = ConsumerGroup(assignor, {f"t{number:02}": number for number in range(1, 20)})
    for number in range(1, 20):
        group.join(f"c{number:02}", *(f"t{topic:02}" for topic in range(1, number + 1)))
    before = settle(group)

    group.leave("c10")
    after = settle(group)

    assert {member: owned for member, owned in before.items() if len(owned - after.get(member, owned)) > 0} == {}


@both
def test_one_member_more(assignor: Assignor) -> None:
    """testReassignmentAfterOneConsumerAdded"""
    group = ConsumerGroup(assignor, {"t": 20})
    for number in range(1, 10):
        group.join(f"c{number}", "t")
    before = settle(group)

    group.join("c10", "t")
    after = settle(group)

    assert sizes(after) == [2] * 10
    assert all(len(before[member] - after[member]) == len(before[member]) - 2 for member in before)


@both
def test_one_of_many_equal_members_leaves(assignor: Assignor) -> None:
    """testSameSubscriptions"""
    topics = {f"t{number:02}": number for number in range(1, 15)}
    group = ConsumerGroup(assignor, topics)
    for number in range(1, 9):
        group.join(f"c{number}", *topics)
    before = settle(group)

    group.leave("c5")
    after = settle(group)

    assert all(before[member] <= after[member] for member in after)


@both
def test_a_new_subscription(assignor: Assignor) -> None:
    """testNewSubscription"""
    group = ConsumerGroup(assignor, {f"t{number}": 1 for number in range(1, 5)})
    for number, topics in enumerate(["", "t1", "t2 t3 t4"]):
        group.join(f"c{number}", *topics.split())
    before = settle(group)

    group.subscribe("c0", "t1")
    assert settle(group) == before


@both
def test_stickiness_with_fewer_partitions_than_members(assignor: Assignor) -> None:
    """testStickiness"""
    group = ConsumerGroup(assignor, {"t": 3})
    for number in range(1, 5):
        group.join(f"c{number}", "t")
    before = settle(group)
    assert sizes(before) == [0, 1, 1, 1]

    group.leave("c1")
    after = settle(group)
    assert sizes(after) == [1, 1, 1]
    assert all(before[member] <= after[member] for member in after)


@both
def test_a_deleted_topic_is_skipped(assignor: Assignor) -> None:
    """testAssignmentUpdatedForDeletedTopic"""
    group = ConsumerGroup(assignor, {"t1": 1, "t3": 100})
    group.join("c", "t1", "t2", "t3")

    assert sizes(settle(group)) == [101]


@pytest.mark.parametrize("equal", [True, False])
def test_members_that_slept_through_generations_1(equal: bool) -> None:
    """testAssignmentWithMultipleGenerations1: c3 misses a rebalance, and returns when c1 leaves."""
    group = ConsumerGroup(StickyAssignor(), {"t": 6, "t2": 6})
    wanted = {"c1": "t t2", "c2": "t t2" if equal else "t", "c3": "t t2"}
    for member, topics in wanted.items():
        group.join(member, *topics.split())
    first = settle(group)
    assert sizes(first) == [4, 4, 4]

    sleeper = group.members.pop("c3")
    second = settle(group)
    assert sizes(second) == [6, 6]
    assert first["c2"] <= second["c2"]
    assert not second["c2"].isdisjoint(first["c3"])
    if equal:
        assert first["c1"] <= second["c1"]

    group.leave("c1")
    group.members["c3"] = sleeper
    assert sizes(settle(group)) == [6, 6]


@pytest.mark.parametrize("equal", [True, False])
def test_members_that_slept_through_generations_2(equal: bool) -> None:
    """testAssignmentWithMultipleGenerations2: c1 and c3 miss a rebalance, and return."""
    group = ConsumerGroup(StickyAssignor(), {"t": 4, "t2": 4, "t3": 4})
    everything = "t t2 t3"
    for member, topics in {"c1": "t", "c2": everything, "c3": "t t2"}.items():
        group.join(member, *(everything if equal else topics).split())
    first = settle(group)
    assert sizes(first) == [4, 4, 4]

    sleepers = {member: group.members.pop(member) for member in ("c1", "c3")}
    second = settle(group)
    assert len(second["c2"]) == 12

    group.members |= sleepers
    third = settle(group)
    assert sizes(third) == [4, 4, 4]
    assert equal or third == first


@both
def test_random_subscriptions_and_changes(assignor: Assignor) -> None:
    """testReassignmentWithRandomSubscriptionsAndChanges"""
    chance = random.Random(54)
    for _ in range(5):
        topics = {f"t{number:02}": number + 1 for number in range(chance.randint(10, 20))}
        group = ConsumerGroup(assignor, topics)
        members = [f"c{number:02}" for number in range(chance.randint(20, 40))]
        for member in members:
            group.join(member, *chance.sample(sorted(topics), chance.randint(1, len(topics))))
        settle(group)
        for member in members:
            group.subscribe(member, *chance.sample(sorted(topics), chance.randint(1, len(topics))))
        settle(group)


@both
def test_many_leave_a_group_of_random_subscriptions(assignor: Assignor) -> None:
    """testLargeAssignmentWithMultipleConsumersLeavingAndRandomSubscription"""
    chance = random.Random(429)
    topics = {f"t{number:02}": chance.randint(1, 10) for number in range(40)}
    group = ConsumerGroup(assignor, topics)
    for number in range(200):
        group.join(f"c{number:03}", *{chance.choice(sorted(topics)) for _ in range(chance.randint(0, 19))})
    settle(group)

    for member in chance.sample(sorted(group.members), 50):
        group.leave(member)
    settle(group)


@both
@pytest.mark.parametrize("equal", [True, False])
def test_a_thousand_members(assignor: Assignor, equal: bool) -> None:
    """testLargeAssignmentAndGroupWithUniformSubscription and …NonEqualSubscription, smaller; one owns everything at first."""
    topics = {f"t{number:02}": 40 for number in range(50)}
    group = ConsumerGroup(assignor, topics)
    group.join("c000", *topics)
    assert len(settle(group)["c000"]) == 2000

    for number in range(1, 1000):
        group.join(f"c{number:03}", *(topics if equal else list(topics)[: 1 + number % 50]))
    before = settle(group)
    for number in range(0, 1000, 10):
        group.leave(f"c{number:03}")
    after = settle(group)

    assert not equal or all(before[member] <= after[member] for member in after)
