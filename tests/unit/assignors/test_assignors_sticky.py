"""Cases of Kafka's AbstractStickyAssignorTest and StickyAssignorTest that one assignment shows; names are in the ids.

The cooperative assignor has the same target, and leaves partitions that change hands unassigned at first.
"""

from collections.abc import Sequence

import pytest
from consumer_groups import assigned, partitions
from racked_topics import mismatches, racked
from sticky_subscriptions import sticky_member

from coordinator_core.assignors import (
    Assignment,
    Assignor,
    Cluster,
    CooperativeStickyAssignor,
    PartitionInfo,
    StickyAssignor,
    Subscription,
)
from coordinator_core.codec import encode_sticky_user_data
from coordinator_core.codec.messages.consumer_protocol import ProtocolTopicPartitions, StickyUserData

EAGER, COOPERATIVE = StickyAssignor(), CooperativeStickyAssignor()
both = pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE], ids=lambda assignor: assignor.name)

#: Kafka's test; topics; subscriptions, owned partitions, their generation; each member's target; partitions that change hands.
CASES = [
    ("testOneConsumerNoTopic", {}, {"c1": ("", "", -1)}, {"c1": ""}, ""),
    ("testOneConsumerNonexistentTopic", {}, {"c1": ("t1", "", -1)}, {"c1": ""}, ""),
    ("testOneConsumerOneTopic", {"t1": 3}, {"c1": ("t1", "", -1)}, {"c1": "t1-0 t1-1 t1-2"}, ""),
    (
        "testOnlyAssignsPartitionsFromSubscribedTopics",
        {"t1": 3, "other": 3},
        {"c1": ("t1", "t1-0 t1-1 other-0 other-1", 1)},
        {"c1": "t1-0 t1-1 t1-2"},
        "",
    ),
    ("testOneConsumerMultipleTopics", {"t1": 1, "t2": 2}, {"c1": ("t1 t2", "", -1)}, {"c1": "t1-0 t2-0 t2-1"}, ""),
    (
        "testTwoConsumersOneTopicOnePartition",
        {"t1": 1},
        {"c1": ("t1", "", -1), "c2": ("t1", "", -1)},
        {"c1": "t1-0", "c2": ""},
        "",
    ),
    (
        "testTwoConsumersOneTopicTwoPartitions",
        {"t1": 2},
        {"c1": ("t1", "", -1), "c2": ("t1", "", -1)},
        {"c1": "t1-0", "c2": "t1-1"},
        "",
    ),
    (
        "testMultipleConsumersMixedTopicSubscriptions",
        {"t1": 3, "t2": 2},
        {"c1": ("t1", "", -1), "c2": ("t1 t2", "", -1), "c3": ("t1", "", -1)},
        {"c1": "t1-0 t1-2", "c2": "t2-0 t2-1", "c3": "t1-1"},
        "",
    ),
    (
        "testTwoConsumersTwoTopicsSixPartitions",
        {"t1": 3, "t2": 3},
        {"c1": ("t1 t2", "", -1), "c2": ("t1 t2", "", -1)},
        {"c1": "t1-0 t1-2 t2-1", "c2": "t1-1 t2-0 t2-2"},
        "",
    ),
    (
        "testConsumerOwningMinQuotaExpectedMaxQuota",
        {"t1": 2, "t2": 3},
        {"c1": ("t1 t2", "t1-0 t2-1", 1), "c2": ("t1 t2", "t1-1 t2-2", 1)},
        {"c1": "t1-0 t2-0 t2-1", "c2": "t1-1 t2-2"},
        "",
    ),
    (
        "testMaxQuotaConsumerMoreThanNumExpectedMaxCapacityMembers",
        {"t1": 2, "t2": 2},
        {"c1": ("t1 t2", "t1-0 t2-0", 1), "c2": ("t1 t2", "t1-1 t2-1", 1), "c3": ("t1 t2", "", 1)},
        {"c1": "t1-0 t2-0", "c2": "t1-1", "c3": "t2-1"},  # Java lets c2 keep two: it iterates members in the order of a hash map
        "t2-1",
    ),
    (
        "testAllConsumersAreUnderMinQuota",
        {"t1": 2, "t2": 3},
        {"c1": ("t1 t2", "t1-0", 1), "c2": ("t1 t2", "t1-1", 1), "c3": ("t1 t2", "", 1)},
        {"c1": "t1-0 t2-1", "c2": "t1-1 t2-2", "c3": "t2-0"},
        "",
    ),
    (
        "testAddRemoveConsumerOneTopic, a consumer more",
        {"t": 3},
        {"c1": ("t", "t-0 t-1 t-2", 1), "c2": ("t", "", 1)},
        {"c1": "t-0 t-1", "c2": "t-2"},
        "t-2",
    ),
    ("testAddRemoveConsumerOneTopic, a consumer less", {"t": 3}, {"c2": ("t", "t-2", 1)}, {"c2": "t-0 t-1 t-2"}, ""),
    (
        "testAddRemoveTwoConsumersTwoTopics",
        {"t1": 3, "t2": 4},
        {"c1": ("t1 t2", "", -1), "c2": ("t1 t2", "", -1)},
        {"c1": "t1-0 t1-2 t2-1 t2-3", "c2": "t1-1 t2-0 t2-2"},
        "",
    ),
    (
        "testAddRemoveTwoConsumersTwoTopics, two more",
        {"t1": 3, "t2": 4},
        {
            "c1": ("t1 t2", "t1-0 t1-2 t2-1 t2-3", 1),
            "c2": ("t1 t2", "t1-1 t2-0 t2-2", 1),
            "c3": ("t1 t2", "", 1),
            "c4": ("t1 t2", "", 1),
        },
        {"c1": "t1-0 t2-1", "c2": "t1-1 t2-0", "c3": "t1-2 t2-3", "c4": "t2-2"},
        "t1-2 t2-3 t2-2",
    ),
    (
        "testAddRemoveTwoConsumersTwoTopics, two less",
        {"t1": 3, "t2": 4},
        {"c3": ("t1 t2", "t1-2 t2-3", 1), "c4": ("t1 t2", "t2-2", 1)},
        {"c3": "t1-0 t1-2 t2-1 t2-3", "c4": "t1-1 t2-0 t2-2"},
        "",
    ),
    (
        "testAllConsumersReachExpectedQuotaAndAreConsideredFilled",
        {"t": 4},
        {"c1": ("t", "t-0 t-1", 1), "c2": ("t", "t-2", 1), "c3": ("t", "", 1)},
        {"c1": "t-0 t-1", "c2": "t-2", "c3": "t-3"},
        "",
    ),
    (
        "testOwnedPartitionsAreInvalidatedForConsumerWithStaleGeneration",
        {"t": 3, "t2": 3},
        {"c1": ("t t2", "t-0 t-2 t2-1", 10), "c2": ("t t2", "t-0 t-2 t2-1", 9)},
        {"c1": "t-0 t-2 t2-1", "c2": "t-1 t2-0 t2-2"},
        "",
    ),
    (
        "testOwnedPartitionsAreInvalidatedForConsumerWithNoGeneration",
        {"t": 3, "t2": 3},
        {"c1": ("t t2", "t-0 t-2 t2-1", 10), "c2": ("t t2", "t-0 t-2 t2-1", -1)},
        {"c1": "t-0 t-2 t2-1", "c2": "t-1 t2-0 t2-2"},
        "",
    ),
    (
        "testPartitionsTransferringOwnershipIncludeThePartitionClaimedByMultipleConsumersInSameGeneration",
        {"t": 3},
        {"c1": ("t", "t-0 t-1", 1), "c2": ("t", "t-0 t-2", 1), "c3": ("t", "", 1)},
        {"c1": "t-1", "c2": "t-2", "c3": "t-0"},
        "t-0",
    ),
    (
        "testAllConsumersHaveOwnedPartitionInvalidatedWhenClaimedByMultipleConsumersInSameGenerationWithUnequalPartitionsPerConsumer",
        {"t": 4},
        {"c1": ("t", "t-0 t-1", 1), "c2": ("t", "t-0 t-2", 1), "c3": ("t", "", 1)},
        {"c1": "t-1 t-3", "c2": "t-2", "c3": "t-0"},
        "t-0",
    ),
    (
        "testEnsurePartitionsAssignedToHighestGeneration",
        {"t": 3, "t2": 3, "t3": 3},
        {
            "c1": ("t t2 t3", "t-0 t2-0 t3-0", 10),
            "c2": ("t t2 t3", "t-1 t2-1 t3-1", 9),
            "c3": ("t t2 t3", "t2-1 t3-0 t3-2", 8),
        },
        {"c1": "t-0 t2-0 t3-0", "c2": "t-1 t2-1 t3-1", "c3": "t-2 t2-2 t3-2"},
        "",
    ),
    (
        "testNoReassignmentOnCurrentMembers",
        {"t": 3, "t1": 3, "t2": 3, "t3": 3},
        {
            "c1": ("t t2 t3 t1", "", -1),
            "c2": ("t t2 t3 t1", "t-0 t2-0 t1-0", 9),
            "c3": ("t t2 t3 t1", "t3-2 t2-2 t1-1", 8),
            "c4": ("t t2 t3 t1", "t3-1 t-1 t-2", 7),
        },
        {"c1": "t1-2 t2-1 t3-0", "c2": "t-0 t1-0 t2-0", "c3": "t1-1 t2-2 t3-2", "c4": "t-1 t-2 t3-1"},
        "",
    ),
    (
        "testOwnedPartitionsAreInvalidatedForConsumerWithMultipleGeneration",
        {"t": 3, "t2": 3},
        {"c1": ("t t2", "t-0 t2-1 t-1", 10), "c2": ("t t2", "t-0 t2-1 t2-2", 8)},
        {"c1": "t-0 t-1 t2-1", "c2": "t-2 t2-0 t2-2"},
        "",
    ),
    ("testNoExceptionThrownWhenOnlySubscribedTopicDeleted", {}, {"c1": ("t", "t-0 t-1 t-2", 1)}, {"c1": ""}, ""),
    (
        "testMoveExistingAssignments",
        dict.fromkeys(("t1", "t2", "t3", "t4", "t5", "t6"), 1),
        {
            "c1": ("t1 t2", "t1-0", 1),
            "c2": ("t1 t2 t3 t4", "t2-0 t3-0", 1),
            "c3": ("t2 t3 t4 t5 t6", "t4-0 t5-0 t6-0", 1),
        },
        {"c1": "t1-0", "c2": "t2-0 t3-0", "c3": "t4-0 t5-0 t6-0"},
        "",
    ),
]


@both
@pytest.mark.parametrize(("topics", "members", "wanted", "moving"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_sticky(
    assignor: Assignor, topics: dict[str, int], members: dict[str, tuple[str, str, int]], wanted: dict[str, str], moving: str
) -> None:
    subscriptions = {
        member: sticky_member(assignor, subscribed.split(), owned, generation)
        for member, (subscribed, owned, generation) in members.items()
    }
    withheld = moving.split() if assignor == COOPERATIVE else []
    expected = {member: " ".join(each for each in owned.split() if each not in withheld) for member, owned in wanted.items()}

    assert assigned(assignor, topics, subscriptions) == expected


@both
@pytest.mark.parametrize("generations", [(1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)])
def test_a_partition_claimed_in_three_generations(assignor: Assignor, generations: tuple[int, int, int]) -> None:
    """testSubscriptionNotEqualAndAssignSamePartitionWith3Generation"""
    owned = {"c1": "t-0 t-2", "c2": "t-1 t-2 t-3", "c3": "t-2 t-4 t-5"}
    members = {
        member: sticky_member(assignor, ["t"], owned[member], generation)
        for member, generation in zip(owned, generations, strict=True)
    }
    shares = assigned(assignor, {"t": 6, "t1": 1}, members | {"c4": sticky_member(assignor, ["t1"], "t1-0", 2)})
    given = " ".join(shares.values()).split()

    assert len(given) == len(set(given))
    assert all(1 <= len(share.split()) <= 2 for share in shares.values())


@pytest.mark.parametrize("equal", [True, False])
def test_claims_of_former_generations_that_contradict_each_other(equal: bool) -> None:
    """testAssignmentWithConflictingPreviousGenerations"""
    everything = ["t", "t2", "t3"]
    owned1 = "t-0 t-1 t-2 t2-2 t2-3 t3-0" if equal else "t-0 t-1 t-2 t-3"
    owned2, owned3 = "t-0 t-1 t2-0 t2-1 t2-2 t2-3", "t-2 t-3 t3-0 t3-1 t3-2 t3-3"
    members = {
        "c1": sticky_member(EAGER, everything if equal else ["t"], owned1, 1),
        "c2": sticky_member(EAGER, everything if equal else ["t", "t2"], owned2, 2),
        "c3": sticky_member(EAGER, everything, owned3, 2),
    }
    shares = assigned(EAGER, {"t": 4, "t2": 4, "t3": 4}, members)

    assert [len(share.split()) for share in shares.values()] == [4, 4, 4]
    assert set(shares["c2"].split()) <= set(owned2.split())
    assert set(shares["c3"].split()) <= set(owned3.split())


def test_a_partition_that_has_to_move_goes_back_to_its_former_owner() -> None:
    """The purpose of `prevAssignment` (KIP-341): c3 has again what it had a generation ago."""
    members = {
        "c1": sticky_member(EAGER, ["t", "other"], "", 2),
        "c2": sticky_member(EAGER, ["t"], "t-0 t-1 t-2 t-3 t-4 t-5", 2),
        "c3": sticky_member(EAGER, ["t"], "t-0 t-1", 1),
    }

    assert assigned(EAGER, {"t": 6}, members) == {"c1": "t-2 t-3", "c2": "t-4 t-5", "c3": "t-0 t-1"}


def test_a_former_owner_that_no_longer_wants_the_topic_does_not_get_it_back() -> None:
    members = {
        "c1": sticky_member(EAGER, ["other"], "t-0 t-1", 1),
        "c2": sticky_member(EAGER, ["t"], "t-0 t-1 t-2 t-3", 2),
        "c3": sticky_member(EAGER, ["t"], "", 2),
    }

    assert assigned(EAGER, {"t": 4}, members) == {"c1": "", "c2": "t-2 t-3", "c3": "t-0 t-1"}


def test_two_members_do_not_swap_partitions_of_a_topic() -> None:
    """`PartitionMovements`: c2 has too much and gives to c1, which gives to c2 again when c2 gave to c0; c1 keeps t0-0."""
    members = {
        "c0": sticky_member(EAGER, ["t1"]),
        "c1": sticky_member(EAGER, ["t0"], "t0-0"),
        "c2": sticky_member(EAGER, ["t0", "t1"], "t0-3 t0-4 t1-0 t1-1 t1-2"),
    }
    shares = assigned(EAGER, {"t0": 5, "t1": 3}, members)

    assert shares == {"c0": "t1-0 t1-1", "c1": "t0-0 t0-1 t0-2", "c2": "t0-3 t0-4 t1-2"}


def test_unowned_partitions_move_before_owned_ones() -> None:
    members = {
        "c0": sticky_member(EAGER, ["t0", "t1"]),
        "c1": sticky_member(EAGER, ["t1"]),
        "c2": sticky_member(EAGER, ["t0"]),
        "c3": sticky_member(EAGER, ["t0", "t1"], "t0-0 t1-2"),
    }

    assert assigned(EAGER, {"t0": 2, "t1": 3}, members) == {"c0": "t1-1", "c1": "t1-0", "c2": "t0-1", "c3": "t0-0 t1-2"}


def test_user_data_of_clients_before_2_3_has_no_generation() -> None:
    """testSchemaBackwardCompatibility"""
    old = encode_sticky_user_data(StickyUserData((ProtocolTopicPartitions("t", (1,)),)), 0)
    members = {"c1": sticky_member(EAGER, ["t"], "t-0 t-2", 1), "c2": Subscription(("t",), old), "c3": Subscription(("t",))}

    assert assigned(EAGER, {"t": 3}, members) == {"c1": "t-0", "c2": "t-1", "c3": "t-2"}


def test_sticky_believes_the_user_data_rather_than_the_owned_partitions() -> None:
    """testMemberDataWithInconsistentData, testMemberDataWillHonorUserData"""
    user_data = EAGER.on_assignment(Assignment(partitions("t-1")), 7).subscription_user_data(["t"])
    members = {"c1": Subscription(("t",), user_data, partitions("t-0"), 7), "c2": Subscription(("t",))}

    assert assigned(EAGER, {"t": 2}, members) == {"c1": "t-1", "c2": "t-0"}


@pytest.mark.parametrize("noise", [b"", b"noise", b"\x00\x00\x00\x09"])
def test_unreadable_user_data_claims_nothing(noise: bytes) -> None:
    members = {"c1": Subscription(("t",), noise), "c2": sticky_member(EAGER, ["t"], "t-0", 1)}

    assert assigned(EAGER, {"t": 2}, members) == {"c1": "t-1", "c2": "t-0"}


def test_a_member_that_was_assigned_nothing_yet_has_no_user_data() -> None:
    assert EAGER.subscription_user_data(["t"]) is None
    assert EAGER.on_assignment(Assignment(), 3).subscription_user_data(["t"]) == bytes.fromhex("00000000 00000003")


def test_deleted_partitions_have_no_owner() -> None:
    members = {"c1": sticky_member(EAGER, ["t"], "t-5 t-0"), "c2": sticky_member(EAGER, ["t", "gone"], "gone-0 t-1")}

    assert assigned(EAGER, {"t": 2}, members) == {"c1": "t-0", "c2": "t-1"}


ABC = ["a", "b", "c"]
NO_RACKS = [None] * 3
TOPICS = {"t1": 6, "t2": 7, "t3": 2}
ALL = ["t1 t2 t3"] * 3
THIRD_WANTS_LESS = ["t1 t2 t3", "t1 t2 t3", "t1 t3"]
IN_TURN = ["t1-0 t1-3 t2-0 t2-3 t2-6", "t1-1 t1-4 t2-1 t2-4 t3-0", "t1-2 t1-5 t2-2 t2-5 t3-1"]
LESS_IN_TURN = ["t1-5 t2-0 t2-2 t2-4 t2-6", "t1-3 t2-1 t2-3 t2-5 t3-0", "t1-0 t1-1 t1-2 t1-4 t3-1"]
ONE_REPLICA = ["t1-3 t2-0 t2-2 t2-3 t2-6", "t1-4 t2-1 t2-4 t2-5 t3-0", "t1-0 t1-1 t1-2 t1-5 t3-1"]
TWO_REPLICAS = ["t1-3 t2-0 t2-2 t2-5 t2-6", "t1-0 t2-1 t2-3 t2-4 t3-0", "t1-1 t1-2 t1-4 t1-5 t3-1"]
BY_FIVES = ["t1-0 t1-1 t1-2 t1-3 t1-4", "t1-5 t2-0 t2-1 t2-2 t2-3", "t2-4 t2-5 t2-6 t3-0 t3-1"]

#: Subscriptions, racks of members, replicas, racks of brokers, shares, partitions far from their owner.
WITH_RACKS = [
    (ALL, ABC, 3, NO_RACKS, IN_TURN, 15),
    (ALL, NO_RACKS, 3, ABC, IN_TURN, 0),
    (ALL, ABC, 4, [*ABC, "d"], IN_TURN, 0),
    (ALL, ABC, 3, ABC, IN_TURN, 0),
    (ALL, ["d", "e", "f"], 3, ABC, IN_TURN, 15),
    (ALL, [None, "e", "f"], 3, ABC, IN_TURN, 10),
    (ALL, ABC, 1, ABC, IN_TURN, 0),
    (ALL, ABC, 2, ABC, IN_TURN, 0),
    (ALL, ABC, 3, ["a", "b"], IN_TURN, 5),
    (THIRD_WANTS_LESS, ABC, 3, NO_RACKS, LESS_IN_TURN, 15),
    (THIRD_WANTS_LESS, NO_RACKS, 3, ABC, LESS_IN_TURN, 0),
    (THIRD_WANTS_LESS, ABC, 4, [*ABC, "d"], LESS_IN_TURN, 0),
    (THIRD_WANTS_LESS, ABC, 3, ABC, LESS_IN_TURN, 0),
    (THIRD_WANTS_LESS, ["d", "e", "f"], 3, ABC, LESS_IN_TURN, 15),
    (THIRD_WANTS_LESS, [None, "e", "f"], 3, ABC, LESS_IN_TURN, 10),
    (THIRD_WANTS_LESS, ABC, 1, ABC, ONE_REPLICA, 4),
    (THIRD_WANTS_LESS, ABC, 2, ABC, TWO_REPLICAS, 0),
    (THIRD_WANTS_LESS, ABC, 3, ["a", "b"], LESS_IN_TURN, 5),
]


def racked_members(
    assignor: Assignor, subscribed: list[str], racks: Sequence[str | None], owned: Sequence[str] = ("", "", "")
) -> dict[str, Subscription]:
    return {f"c{n}": sticky_member(assignor, subscribed[n].split(), owned[n], -1, racks[n]) for n in range(3)}


@both
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("subscribed", "racks", "replicas", "brokers", "expected", "far"), WITH_RACKS)
def test_partitions_in_the_rack_where_shares_are_equal(
    assignor: Assignor,
    again: bool,
    subscribed: list[str],
    racks: list[str | None],
    replicas: int,
    brokers: list[str | None],
    expected: list[str],
    far: int,
) -> None:
    """testRackAwareAssignmentWithUniformSubscription, …NonEqualSubscription; also where exactly that is owned already."""
    metadata = racked(TOPICS, replicas, brokers)
    members = racked_members(assignor, subscribed, racks, expected if again else ("", "", ""))

    assert list(assigned(assignor, metadata, members).values()) == expected
    assert len(mismatches(metadata, members, assignor.assign(metadata, members)).split()) == far


@both
def test_nearness_gives_no_member_more_than_its_share(assignor: Assignor) -> None:
    """Four partitions for three members: once one has two, the others get one each, near or not."""
    replicas = [{"a"}, {"a", "c"}, {"c"}, {"c"}]
    metadata = Cluster({"t": tuple(PartitionInfo(n, None, frozenset(racks)) for n, racks in enumerate(replicas))})
    members = {f"c{n}": sticky_member(assignor, ["t"], "", -1, rack) for n, rack in enumerate(["a", "c", "b"])}

    assert assigned(assignor, metadata, members) == {"c0": "t-0", "c1": "t-2 t-3", "c2": "t-1"}


#: Subscriptions, replicas; the sticky assignment of `BY_FIVES`; the cooperative one in the first and in the second round.
FROM_FIVES = [
    (ALL, 1, IN_TURN, ["t1-0 t1-3", "t2-1", "t2-5 t3-1"], IN_TURN),
    (THIRD_WANTS_LESS, 1, ONE_REPLICA, ["t1-3", "t2-1", "t3-1"], ONE_REPLICA),
]


@pytest.mark.parametrize(("subscribed", "replicas", "eager", "first", "second"), FROM_FIVES)
def test_far_partitions_that_are_owned_go_to_near_members(
    subscribed: list[str], replicas: int, eager: list[str], first: list[str], second: list[str]
) -> None:
    """The same Kafka tests, where owned partitions are misaligned."""
    metadata = racked(TOPICS, replicas, ABC)

    def shares(assignor: Assignor, owned: list[str]) -> list[str]:
        return list(assigned(assignor, metadata, racked_members(assignor, subscribed, ABC, owned)).values())

    assert shares(EAGER, BY_FIVES) == eager
    assert shares(COOPERATIVE, BY_FIVES) == first
    assert shares(COOPERATIVE, first) == second


def test_unwanted_partitions_alone_move_where_racks_do_not_matter() -> None:
    """testRackAwareAssignmentWithNonEqualSubscription, where all racks match."""
    metadata = racked(TOPICS, 3, ABC)

    def shares(owned: list[str]) -> list[str]:
        return list(assigned(COOPERATIVE, metadata, racked_members(COOPERATIVE, THIRD_WANTS_LESS, ABC, owned)).values())

    first = ["t1-2 t1-3 t1-4", "t2-0 t2-1 t2-2 t2-3", "t3-0 t3-1"]
    assert shares(BY_FIVES) == first
    assert shares(first) == ["t1-2 t1-3 t1-4 t2-4 t2-5", "t2-0 t2-1 t2-2 t2-3 t2-6", "t1-0 t1-1 t1-5 t3-0 t3-1"]
