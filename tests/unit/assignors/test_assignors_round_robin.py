"""Cases of Kafka's RoundRobinAssignorTest, and of AbstractPartitionAssignorTest about the order of members."""

import pytest
from consumer_groups import assigned

from coordinator_core.assignors import RoundRobinAssignor, Subscription
from coordinator_core.assignors.member_order import members_in_order

CASES = [
    ("testOneConsumerNoTopic", {}, {"c1": ""}, {"c1": ""}),
    ("testOneConsumerNonexistentTopic", {}, {"c1": "t1"}, {"c1": ""}),
    ("testOneConsumerOneTopic", {"t1": 3}, {"c1": "t1"}, {"c1": "t1-0 t1-1 t1-2"}),
    ("testOnlyAssignsPartitionsFromSubscribedTopics", {"t1": 3, "other": 3}, {"c1": "t1"}, {"c1": "t1-0 t1-1 t1-2"}),
    ("testOneConsumerMultipleTopics", {"t1": 1, "t2": 2}, {"c1": "t1 t2"}, {"c1": "t1-0 t2-0 t2-1"}),
    ("testTwoConsumersOneTopicOnePartition", {"t1": 1}, {"c1": "t1", "c2": "t1"}, {"c1": "t1-0", "c2": ""}),
    ("testTwoConsumersOneTopicTwoPartitions", {"t1": 2}, {"c1": "t1", "c2": "t1"}, {"c1": "t1-0", "c2": "t1-1"}),
    (
        "testMultipleConsumersMixedTopics",
        {"t1": 3, "t2": 2},
        {"c1": "t1", "c2": "t1 t2", "c3": "t1"},
        {"c1": "t1-0", "c2": "t1-1 t2-0 t2-1", "c3": "t1-2"},
    ),
    (
        "testTwoDynamicConsumersTwoTopicsSixPartitions",
        {"t1": 3, "t2": 3},
        {"c1": "t1 t2", "c2": "t1 t2"},
        {"c1": "t1-0 t1-2 t2-1", "c2": "t1-1 t2-0 t2-2"},
    ),
]


@pytest.mark.parametrize(("topics", "subscribed", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_round_robin(topics: dict[str, int], subscribed: dict[str, str], expected: dict[str, str]) -> None:
    members = {member: Subscription(tuple(wanted.split())) for member, wanted in subscribed.items()}

    assert assigned(RoundRobinAssignor(), topics, members) == expected


def static(**instances: str | None) -> dict[str, Subscription]:
    return {member: Subscription(("t1", "t2"), group_instance_id=instance) for member, instance in instances.items()}


@pytest.mark.parametrize("instances", [{"b": "i1", "a": "i2"}, {"b": "i1", "a": None}])
def test_static_members_are_first_by_instance_id(instances: dict[str, str | None]) -> None:
    """testTwoStaticConsumersTwoTopicsSixPartitions, testOneStaticConsumerAndOneDynamicConsumerTwoTopicsSixPartitions"""
    expected = {"b": "t1-0 t1-2 t2-1", "a": "t1-1 t2-0 t2-2"}

    assert assigned(RoundRobinAssignor(), {"t1": 3, "t2": 3}, static(**instances)) == expected


@pytest.mark.parametrize("dynamic", ["c4", "a5"])
def test_static_members_keep_their_partitions_when_dynamic_ones_join_and_leave(dynamic: str) -> None:
    """testStaticMemberRoundRobinAssignmentPersistent"""
    members = static(c1="i1", c2="i2", c3="i3", **{dynamic: None})

    assert assigned(RoundRobinAssignor(), {"t1": 3, "t2": 3}, members) == {
        "c1": "t1-0 t2-1",
        "c2": "t1-1 t2-2",
        "c3": "t1-2",
        dynamic: "t2-0",
    }


@pytest.mark.parametrize("ids", [("c1", "c2", "c3"), ("c1", "c5", "c4")])
def test_static_members_keep_their_partitions_under_new_member_ids(ids: tuple[str, str, str]) -> None:
    """testStaticMemberRoundRobinAssignmentPersistentAfterMemberIdChanges"""
    members = static(**dict(zip(ids, ("i1", "i2", "i3"), strict=True)))
    shares = assigned(RoundRobinAssignor(), {"t1": 5, "t2": 5}, members)

    assert [shares[member] for member in ids] == ["t1-0 t1-3 t2-1 t2-4", "t1-1 t1-4 t2-2", "t1-2 t2-0 t2-3"]


@pytest.mark.parametrize(
    ("instances", "order"),
    [
        ({"b": None, "a": None, "c": None}, "abc"),
        ({"a": "y", "b": "z", "c": "x"}, "cab"),
        ({"a": None, "b": "y", "c": "x"}, "cba"),
    ],
    ids=[
        "testMemberInfoSortingWithoutGroupInstanceId",
        "testMemberInfoSortingWithAllGroupInstanceId",
        "testMemberInfoSortingSomeGroupInstanceId",
    ],
)
def test_order_of_members(instances: dict[str, str | None], order: str) -> None:
    assert "".join(members_in_order(static(**instances))) == order


def test_order_of_many_members() -> None:
    """testMergeSortManyMemberInfo"""
    instances = {f"{number}": f"{number}" if number % 3 else None for number in range(199, 99, -1)}
    statics = sorted(member for member, instance in instances.items() if instance)

    assert members_in_order(static(**instances)) == statics + sorted(set(instances) - set(statics))
