"""Cases of Kafka's CooperativeStickyAssignorTest, and the transfer of a partition in two rebalances (KIP-429)."""

import pytest
from consumer_groups import ConsumerGroup, assigned, partitions
from racked_topics import racked
from sticky_subscriptions import sticky_member

from coordinator_core.assignors import Cluster, CooperativeStickyAssignor, PartitionInfo, StickyAssignor, Subscription
from coordinator_core.assignors.model import Assignment
from coordinator_core.codec import encode_cooperative_user_data
from coordinator_core.codec.messages.consumer_protocol import CooperativeStickyUserData

COOPERATIVE = CooperativeStickyAssignor()


def generation(value: int) -> bytes:
    return encode_cooperative_user_data(CooperativeStickyUserData(value))


def test_user_data_is_the_generation() -> None:
    """testEncodeAndDecodeGeneration"""
    assert COOPERATIVE.subscription_user_data(["t"]) == generation(-1)
    assert COOPERATIVE.on_assignment(Assignment(()), 10).subscription_user_data(["t"]) == generation(10)


def test_a_partition_changes_hands_in_two_rebalances() -> None:
    group = ConsumerGroup(COOPERATIVE, {"t": 3})
    group.join("c1", "t")
    assert group.rebalance() == {"c1": "t-0 t-1 t-2"}

    group.join("c2", "t")
    assert group.rebalance() == {"c1": "t-0 t-1", "c2": ""}
    assert group.rebalance() == {"c1": "t-0 t-1", "c2": "t-2"}
    assert group.rebalance() == {"c1": "t-0 t-1", "c2": "t-2"}


def test_unowned_partitions_are_assigned_in_the_same_rebalance() -> None:
    group = ConsumerGroup(COOPERATIVE, {"t": 4})
    for member in ("c1", "c2"):
        group.join(member, "t")
    group.rebalance()

    group.leave("c1")
    group.join("c3", "t")
    assert group.rebalance() == {"c2": "t-1 t-3", "c3": "t-0 t-2"}


@pytest.mark.parametrize("topics", [{"t": 3}, {"t": 4}])
def test_a_partition_with_two_owners_is_taken_from_both_first(topics: dict[str, int]) -> None:
    """testAllConsumersHaveOwnedPartitionInvalidatedWhenClaimedByMultipleConsumersInSameGeneration…"""
    members = {
        "c1": sticky_member(COOPERATIVE, ["t"], "t-0 t-1"),
        "c2": sticky_member(COOPERATIVE, ["t"], "t-0 t-2"),
        "c3": sticky_member(COOPERATIVE, ["t"]),
    }
    first = assigned(COOPERATIVE, topics, members)
    assert first == {"c1": "t-1 t-3" if topics["t"] == 4 else "t-1", "c2": "t-2", "c3": ""}

    owning = {member: sticky_member(COOPERATIVE, ["t"], owned) for member, owned in first.items()}
    assert assigned(COOPERATIVE, topics, owning) == first | {"c3": "t-0"}


def test_a_member_that_missed_a_rebalance_loses_to_the_current_owner() -> None:
    members = {
        "c1": sticky_member(COOPERATIVE, ["t", "t2"], "t-0 t-1", 4),
        "c2": sticky_member(COOPERATIVE, ["t"], "t-0", 5),
    }

    assert assigned(COOPERATIVE, {"t": 2}, members) == {"c1": "t-1", "c2": "t-0"}


def test_a_partition_still_owned_is_not_given_to_a_member_with_an_outdated_claim() -> None:
    """c1 slept while c2 got t-0 and t-1; now c1 is assigned t-0 again, which c2 has to give up first."""
    members = {
        "c1": sticky_member(COOPERATIVE, ["t", "other"], "t-0", 4),
        "c2": sticky_member(COOPERATIVE, ["t"], "t-0 t-1", 5),
    }

    assert assigned(COOPERATIVE, {"t": 2}, members) == {"c1": "", "c2": "t-1"}


@pytest.mark.parametrize(
    ("subscription", "owner"),
    [
        (Subscription(("t",), generation(5), partitions("t-0")), "c1"),
        (Subscription(("t",), generation(3), partitions("t-0")), "c2"),
        (Subscription(("t",), generation(3), partitions("t-0"), 5), "c1"),
        (Subscription(("t",), generation(5), partitions("t-0"), 3), "c2"),
        (Subscription(("t",), None, partitions("t-0")), "c2"),
        (Subscription(("t",), b"no", partitions("t-0")), "c2"),
    ],
)
def test_the_generation_is_a_field_and_before_that_it_was_user_data(subscription: Subscription, owner: str) -> None:
    """testMemberDataWithInconsistentData, testDecodeGeneration, testMemberDataWithEmptyPartitionsAndHigherGeneration"""
    shares = assigned(COOPERATIVE, {"t": 1}, {"c1": subscription, "c2": sticky_member(COOPERATIVE, ["t"], "t-0", 4)})

    assert shares == {"c1": "", "c2": ""} | {owner: "t-0"}


def test_subscriptions_of_version_1_and_2_in_one_group() -> None:
    """testAssignorWithOldVersionSubscriptions"""
    members = {
        "c1": Subscription(("t",), generation(1), partitions("t-0")),
        "c2": Subscription(("t",), generation(1), partitions("t-1")),
        "c3": Subscription(("t",), None, (), 1),
    }

    assert assigned(COOPERATIVE, {"t": 3}, members) == {"c1": "t-0", "c2": "t-1", "c3": "t-2"}


def test_partitions_that_go_to_a_nearer_member_change_hands_in_two_rebalances() -> None:
    """testUniformSubscriptionTransferOwnershipListIsRight"""
    metadata = racked({"t": 4}, 1, ["a", "b"])

    def members(*owned: str) -> dict[str, Subscription]:
        return {f"c{n}": sticky_member(COOPERATIVE, ["t"], owned[n], rack="ab"[n]) for n in range(2)}

    assert assigned(COOPERATIVE, metadata, members("t-0 t-1", "t-2 t-3")) == {"c0": "t-0", "c1": "t-3"}
    assert assigned(COOPERATIVE, metadata, members("t-0", "t-3")) == {"c0": "t-0 t-2", "c1": "t-1 t-3"}
    assert assigned(StickyAssignor(), metadata, members("t-0 t-1", "t-2 t-3")) == {"c0": "t-0 t-2", "c1": "t-1 t-3"}


def test_members_do_not_give_up_far_partitions_because_others_did() -> None:
    """If they did, this group would not stop rebalancing: each round would free partitions that are far from their new owners."""
    replicas = {"t0": ["a", "bc", "abc"], "t1": ["bc", "ab", "c", "ac"]}
    metadata = Cluster(
        {topic: tuple(PartitionInfo(n, None, frozenset(racks)) for n, racks in enumerate(of)) for topic, of in replicas.items()}
    )
    group = ConsumerGroup(COOPERATIVE, metadata)
    for member, topics, rack, owned in [
        ("c1", ["t1"], "d", "t1-0"),
        ("c2", ["t0", "t1"], "c", "t0-2 t1-2 t1-3"),
        ("c9", ["t0", "t1"], "b", "t0-0 t0-1"),
    ]:
        group.join(member, *topics, rack=rack)
        group.members[member].owned, group.members[member].generation = partitions(owned), 1

    assert group.settle() == 1
    assert group.owned() == {"c1": "t1-0 t1-1", "c2": "t0-2 t1-2 t1-3", "c9": "t0-0 t0-1"}
