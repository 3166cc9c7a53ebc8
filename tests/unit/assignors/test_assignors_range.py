"""Cases of Kafka's RangeAssignorTest; the test's name is in the id or the docstring."""

import pytest
from consumer_groups import assigned
from racked_topics import mismatches, racked

from coordinator_core.assignors import Cluster, PartitionInfo, RangeAssignor, Subscription
from coordinator_core.assignors.racks import racks_matter

RACKS = ["a", "b", "c", "d"]
NO_RACKS = [None] * 4


def subscriptions_of(**topics: str) -> dict[str, Subscription]:
    return {member: Subscription(tuple(subscribed.split())) for member, subscribed in topics.items()}


WITHOUT_RACKS = [
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
        "testTwoConsumersTwoTopicsSixPartitions",
        {"t1": 3, "t2": 3},
        {"c1": "t1 t2", "c2": "t1 t2"},
        {"c1": "t1-0 t1-1 t2-0 t2-1", "c2": "t1-2 t2-2"},
    ),
]


@pytest.mark.parametrize(
    ("topics", "subscribed", "expected"), [case[1:] for case in WITHOUT_RACKS], ids=[case[0] for case in WITHOUT_RACKS]
)
def test_range(topics: dict[str, int], subscribed: dict[str, str], expected: dict[str, str]) -> None:
    assert assigned(RangeAssignor(), topics, subscriptions_of(**subscribed)) == expected


def static(topics: tuple[str, str], **instances: str | None) -> dict[str, Subscription]:
    """Members by id, with the instance id of those that have one."""
    return {member: Subscription(topics, group_instance_id=instance) for member, instance in instances.items()}


BOTH = ("t1", "t2")


@pytest.mark.parametrize("instances", [{"b": "i1", "a": "i2"}, {"b": "i1", "a": None}])
def test_static_members_are_first_by_instance_id(instances: dict[str, str | None]) -> None:
    """testTwoStaticConsumersTwoTopicsSixPartitions, testOneStaticConsumerAndOneDynamicConsumerTwoTopicsSixPartitions"""
    expected = {"b": "t1-0 t1-1 t2-0 t2-1", "a": "t1-2 t2-2"}

    assert assigned(RangeAssignor(), {"t1": 3, "t2": 3}, static(BOTH, **instances)) == expected


@pytest.mark.parametrize("dynamic", ["c4", "a5"])
def test_static_members_keep_their_partitions_when_dynamic_ones_join_and_leave(dynamic: str) -> None:
    """testStaticMemberRangeAssignmentPersistent"""
    members = static(BOTH, c1="i1", c2="i2", c3="i3") | static(BOTH, **{dynamic: None})

    assert assigned(RangeAssignor(), {"t1": 5, "t2": 4}, members) == {
        "c1": "t1-0 t1-1 t2-0",
        "c2": "t1-2 t2-1",
        "c3": "t1-3 t2-2",
        dynamic: "t1-4 t2-3",
    }


@pytest.mark.parametrize("ids", [("c1", "c2", "c3"), ("c1", "c5", "c4")])
def test_static_members_keep_their_partitions_under_new_member_ids(ids: tuple[str, str, str]) -> None:
    """testStaticMemberRangeAssignmentPersistentAfterMemberIdChanges"""
    members = static(BOTH, **dict(zip(ids, ("i1", "i2", "i3"), strict=True)))
    shares = assigned(RangeAssignor(), {"t1": 5, "t2": 5}, members)

    assert [shares[member] for member in ids] == ["t1-0 t1-1 t2-0 t2-1", "t1-2 t1-3 t2-2 t2-3", "t1-4 t2-4"]


@pytest.mark.parametrize("ids", [("c1", "c2", "c3"), ("c1", "c5", "c4")])
def test_static_members_in_racks_keep_their_partitions_under_new_member_ids(ids: tuple[str, str, str]) -> None:
    """testRackAwareStaticMemberRangeAssignmentPersistentAfterMemberIdChanges"""
    brokers = (RACKS[:3] * 2)[:6]
    metadata = {**racked({"t1": 5}, 2, brokers).topics, **racked({"t2": 5}, 2, brokers).topics}
    members = {
        member: Subscription(BOTH, rack_id=rack, group_instance_id=f"i{rack}")
        for member, rack in zip(ids, RACKS[:3], strict=True)
    }
    shares = assigned(RangeAssignor(), Cluster(metadata), members)

    assert [shares[member] for member in ids] == ["t1-0 t1-2 t2-0 t2-2", "t1-1 t1-3 t2-1 t2-3", "t1-4 t2-4"]


ALL = ["t1 t2 t3"] * 3
THIRD_WANTS_LESS = ["t1 t2 t3", "t1 t2 t3", "t1 t3"]
UNIFORM = ["t1-0 t1-1 t2-0 t2-1 t2-2 t3-0", "t1-2 t1-3 t2-3 t2-4 t3-1", "t1-4 t1-5 t2-5 t2-6"]
NON_EQUAL = ["t1-0 t1-1 t2-0 t2-1 t2-2 t2-3 t3-0", "t1-2 t1-3 t2-4 t2-5 t2-6 t3-1", "t1-4 t1-5"]
FIVES = ["t1-0 t1-1 t2-0 t2-1 t3-0 t3-1", "t1-2 t1-3 t2-2 t2-3 t3-2 t3-3", "t1-4 t2-4 t3-4"]
FIVES_NON_EQUAL = ["t1-0 t1-1 t2-0 t2-1 t2-2 t3-0 t3-1", "t1-2 t1-3 t2-3 t2-4 t3-2 t3-3", "t1-4 t3-4"]
TWO_THREES = {"t1": 6, "t2": 7, "t3": 2}
THREE_FIVES = {"t1": 5, "t2": 5, "t3": 5}


@pytest.mark.parametrize(
    ("replicas", "brokers", "racks"),
    [
        (3, NO_RACKS[:3], RACKS[:3]),
        (3, RACKS[:3], NO_RACKS[:3]),
        (3, RACKS[:3], RACKS[:3]),
        (4, RACKS, RACKS[:3]),
        (3, RACKS[:3], ["d", "e", "f"]),
        (3, RACKS[:3], [None, "e", "f"]),
    ],
)
@pytest.mark.parametrize(
    ("topics", "subscribed", "expected"),
    [
        (TWO_THREES, ALL, UNIFORM),
        (TWO_THREES, THIRD_WANTS_LESS, NON_EQUAL),
        (THREE_FIVES, ALL, FIVES),
        (THREE_FIVES, THIRD_WANTS_LESS, FIVES_NON_EQUAL),
    ],
)
def test_racks_that_make_no_difference(
    topics: dict[str, int],
    subscribed: list[str],
    expected: list[str],
    replicas: int,
    brokers: list[str | None],
    racks: list[str | None],
) -> None:
    """verifyNonRackAwareAssignment of the four testRackAwareAssignmentWith…"""
    members = {
        f"c{number}": Subscription(tuple(subscribed[number].split()), rack_id=racks[number]) for number in range(len(subscribed))
    }

    assert list(assigned(RangeAssignor(), racked(topics, replicas, brokers), members).values()) == expected


UNIFORM_CASE = "testRackAwareAssignmentWithUniformSubscription"
NON_EQUAL_CASE = "testRackAwareAssignmentWithNonEqualSubscription"
FIVES_CASE = "testRackAwareAssignmentWithUniformPartitions"
FIVES_NON_EQUAL_CASE = "testRackAwareAssignmentWithUniformPartitionsNonEqualSubscription"
TOGETHER_CASE = "testRackAwareAssignmentWithCoPartitioning"
ABC = RACKS[:3]
AB = RACKS[:2]
PAIRS = {"t1": 6, "t2": 6, "t3": 2, "t4": 2}
PAIRS_APART = ["t1 t2", "t1 t2", "t3 t4", "t3 t4"]
PAIRS_TOGETHER = ["t1 t2 t3 t4"] * 4
PAIRS_APART_SHARES = ["t1-0 t1-1 t1-2 t2-0 t2-1 t2-2", "t1-3 t1-4 t1-5 t2-3 t2-4 t2-5", "t3-0 t4-0", "t3-1 t4-1"]
PAIRS_TOGETHER_SHARES = ["t1-0 t1-1 t2-0 t2-1 t3-0 t4-0", "t1-2 t1-3 t2-2 t2-3 t3-1 t4-1", "t1-4 t2-4", "t1-5 t2-5"]
ABBA = ["a", "b", "b", "a"]

#: Kafka's test, topics, subscriptions, racks of members, replicas, racks of brokers, shares, partitions far from their owner.
WITH_RACKS = [
    (
        UNIFORM_CASE,
        TWO_THREES,
        ALL,
        ABC,
        1,
        ABC,
        ["t1-0 t1-3 t2-0 t2-3 t2-6", "t1-1 t1-4 t2-1 t2-4 t3-0", "t1-2 t1-5 t2-2 t2-5 t3-1"],
        0,
    ),
    (
        UNIFORM_CASE,
        TWO_THREES,
        ALL,
        ABC,
        2,
        ABC,
        ["t1-0 t1-2 t2-0 t2-2 t2-3 t3-1", "t1-1 t1-3 t2-1 t2-4 t3-0", "t1-4 t1-5 t2-5 t2-6"],
        1,
    ),
    (UNIFORM_CASE, TWO_THREES, ALL, ABC, 3, AB, UNIFORM, 4),
    (
        NON_EQUAL_CASE,
        TWO_THREES,
        THIRD_WANTS_LESS,
        ABC,
        1,
        ABC,
        ["t1-0 t1-3 t2-0 t2-2 t2-3 t2-6", "t1-1 t1-4 t2-1 t2-4 t2-5 t3-0", "t1-2 t1-5 t3-1"],
        2,
    ),
    (
        NON_EQUAL_CASE,
        TWO_THREES,
        THIRD_WANTS_LESS,
        ABC,
        2,
        ABC,
        ["t1-0 t1-2 t2-0 t2-2 t2-3 t2-5 t3-1", "t1-1 t1-3 t2-1 t2-4 t2-6 t3-0", "t1-4 t1-5"],
        0,
    ),
    (NON_EQUAL_CASE, TWO_THREES, THIRD_WANTS_LESS, ABC, 3, AB, NON_EQUAL, 2),
    (FIVES_CASE, THREE_FIVES, ALL, ABC, 1, ABC, FIVES, 10),
    (FIVES_CASE, THREE_FIVES, ALL, ABC, 2, ABC, FIVES, 5),
    (FIVES_CASE, THREE_FIVES, ALL, ABC, 3, AB, FIVES, 3),
    (
        FIVES_NON_EQUAL_CASE,
        THREE_FIVES,
        THIRD_WANTS_LESS,
        ABC,
        1,
        ABC,
        ["t1-0 t1-1 t2-0 t2-1 t2-4 t3-0 t3-1", "t1-2 t1-3 t2-2 t2-3 t3-2 t3-3", "t1-4 t3-4"],
        9,
    ),
    (
        FIVES_NON_EQUAL_CASE,
        THREE_FIVES,
        THIRD_WANTS_LESS,
        ABC,
        2,
        ABC,
        ["t1-2 t2-0 t2-1 t2-3 t3-2", "t1-0 t1-3 t2-2 t2-4 t3-0 t3-3", "t1-1 t1-4 t3-1 t3-4"],
        0,
    ),
    (FIVES_NON_EQUAL_CASE, THREE_FIVES, THIRD_WANTS_LESS, ABC, 3, AB, FIVES_NON_EQUAL, 2),
    (TOGETHER_CASE, PAIRS, PAIRS_APART, ABBA, 2, AB, PAIRS_APART_SHARES, 0),
    (
        TOGETHER_CASE,
        PAIRS,
        PAIRS_APART,
        ABBA,
        1,
        AB,
        ["t1-0 t1-2 t1-4 t2-0 t2-2 t2-4", "t1-1 t1-3 t1-5 t2-1 t2-3 t2-5", "t3-1 t4-1", "t3-0 t4-0"],
        0,
    ),
    (TOGETHER_CASE, PAIRS, PAIRS_TOGETHER, ABBA, 2, AB, PAIRS_TOGETHER_SHARES, 0),
    (
        TOGETHER_CASE,
        PAIRS,
        PAIRS_TOGETHER,
        ABBA,
        1,
        AB,
        ["t1-0 t1-2 t2-0 t2-2 t3-0 t4-0", "t1-1 t1-3 t2-1 t2-3 t3-1 t4-1", "t1-5 t2-5", "t1-4 t2-4"],
        0,
    ),
    (
        TOGETHER_CASE,
        PAIRS,
        PAIRS_TOGETHER,
        ABBA,
        1,
        ABC,
        ["t1-0 t1-3 t2-0 t2-3 t3-0 t4-0", "t1-1 t1-4 t2-1 t2-4 t3-1 t4-1", "t1-2 t2-2", "t1-5 t2-5"],
        6,
    ),
    (
        "testCoPartitionedAssignmentWithSameSubscription",
        {"t1": 6, "t2": 6, "t3": 2, "t4": 2, "t5": 4, "t6": 4},
        ["t1 t2 t3 t4 t5 t6 t7 t8 t9"] * 3,
        ABC,
        2,
        ABC,
        [
            "t1-0 t1-2 t2-0 t2-2 t3-0 t4-0 t5-1 t6-1",
            "t1-1 t1-3 t2-1 t2-3 t3-1 t4-1 t5-2 t6-2",
            "t1-4 t1-5 t2-4 t2-5 t5-0 t5-3 t6-0 t6-3",
        ],
        0,
    ),
]


@pytest.mark.parametrize(
    ("topics", "subscribed", "racks", "replicas", "brokers", "expected", "far"),
    [case[1:] for case in WITH_RACKS],
    ids=[case[0] for case in WITH_RACKS],
)
def test_members_in_the_rack_get_partitions_where_shares_are_as_large(
    topics: dict[str, int],
    subscribed: list[str],
    racks: list[str],
    replicas: int,
    brokers: list[str],
    expected: list[str],
    far: int,
) -> None:
    metadata = racked(topics, replicas, brokers)
    members = {f"c{n}": Subscription(tuple(subscribed[n].split()), rack_id=racks[n]) for n in range(len(subscribed))}

    assert list(assigned(RangeAssignor(), metadata, members).values()) == expected
    assert len(mismatches(metadata, members, RangeAssignor().assign(metadata, members)).split()) == far


def test_when_racks_matter() -> None:
    """AbstractPartitionAssignorTest.testUseRackAwareAssignment"""
    everywhere = [frozenset("abc")] * 10
    somewhere = [frozenset("abc"[number % 3]) for number in range(10)]

    for racks in (set[str](), {"d"}, {"a", "b", "c"}, {"a", "b"}, {"a", "d"}):
        assert not racks_matter(racks, everywhere)
    assert not racks_matter({"a"}, [])
    assert not racks_matter({"d"}, somewhere)
    for racks in ({"a", "b", "c"}, {"a", "b"}, {"a", "d"}):
        assert racks_matter(racks, somewhere)


def test_an_empty_rack_is_none() -> None:
    metadata = racked({"t": 2}, 1, AB)
    members = {"c0": Subscription(("t",), rack_id=""), "c1": Subscription(("t",), rack_id="a")}

    assert assigned(RangeAssignor(), metadata, members) == assigned(
        RangeAssignor(), metadata, members | {"c0": Subscription(("t",), rack_id=None)}
    )


def test_partitions_in_any_order_and_topics_more_than_once() -> None:
    metadata = Cluster({"t": (PartitionInfo(2), PartitionInfo(0), PartitionInfo(1))})

    assert assigned(RangeAssignor(), metadata, {"a": Subscription(("t", "t")), "b": Subscription(("t",))}) == {
        "a": "t-0 t-1",
        "b": "t-2",
    }
