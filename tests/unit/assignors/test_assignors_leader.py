"""The leader's work on the bytes of JoinGroup and SyncGroup, and its errors."""

from collections.abc import Mapping, Sequence

import pytest
from consumer_groups import partitions
from expecting import expect

from coordinator_core.assignors import (
    Assignment,
    AssignmentFailed,
    Assignor,
    Cluster,
    CooperativeStickyAssignor,
    PartitionAssignor,
    RangeAssignor,
    RebalanceProtocol,
    RoundRobinAssignor,
    StickyAssignor,
    Subscription,
    assign_group,
    assignment_bytes,
    read_assignment,
    read_subscription,
    rebalance_protocol,
    subscription_bytes,
)
from coordinator_core.assignors.model import PartitionInfo
from coordinator_core.codec import Malformed
from coordinator_core.codec.topic_partition import TopicPartition

METADATA = Cluster.of_counts({"t": 2, "u": 1})


class Careless(PartitionAssignor):
    """Claims to be cooperative, and gives everything to the last member in one rebalance."""

    name = "careless"
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)

    def assign_partitions(
        self, partitions: Mapping[str, Sequence[PartitionInfo]], subscriptions: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        *others, last = subscriptions
        return {member: [] for member in others} | {last: [*partition_list(partitions)]}


def partition_list(by_topic: Mapping[str, Sequence[PartitionInfo]]) -> tuple[TopicPartition, ...]:
    return partitions(" ".join(f"{topic}-{info.partition}" for topic, infos in by_topic.items() for info in infos))


@pytest.mark.parametrize(
    ("assignors", "protocol"),
    [
        ([RangeAssignor()], RebalanceProtocol.EAGER),
        ([CooperativeStickyAssignor()], RebalanceProtocol.COOPERATIVE),
        ([RangeAssignor(), CooperativeStickyAssignor()], RebalanceProtocol.EAGER),
        ([RangeAssignor(), RoundRobinAssignor(), StickyAssignor()], RebalanceProtocol.EAGER),
    ],
)
def test_the_highest_protocol_that_all_assignors_have(assignors: list[Assignor], protocol: RebalanceProtocol) -> None:
    assert rebalance_protocol(assignors) is protocol


@pytest.mark.parametrize(("assignors", "names"), [([], "none"), ([RangeAssignor(), Careless()], "careless, range")])
def test_assignors_without_a_common_protocol(assignors: list[Assignor], names: str) -> None:
    with pytest.raises(AssignmentFailed, match=f"assignors {names} have no rebalance protocol in common"):
        rebalance_protocol(assignors)


def test_assignments_by_member() -> None:
    members = [
        ("b", None, subscription_bytes(Subscription(("t", "u")))),
        ("a", None, subscription_bytes(Subscription(("t",)), 0)),
        ("z", "static", subscription_bytes(Subscription(("t", "unknown")), 1)),
    ]

    shares = assign_group("range", [RoundRobinAssignor(), RangeAssignor()], METADATA, members)

    assert {member: expect(Assignment, read_assignment(share)).partitions for member, share in shares.items()} == {
        "z": partitions("t-0"),
        "a": partitions("t-1"),
        "b": partitions("u-0"),
    }


def test_an_assignor_that_this_member_lacks() -> None:
    with pytest.raises(AssignmentFailed, match="the coordinator chose assignor 'sticky', but this member has range, roundrobin"):
        assign_group("sticky", [RangeAssignor(), RoundRobinAssignor()], METADATA, [])


def test_a_subscription_that_is_none() -> None:
    with pytest.raises(AssignmentFailed, match="member 'm': malformed subscription at byte 0"):
        assign_group("range", [RangeAssignor()], METADATA, [("m", None, b"\x00")])


def test_a_cooperative_assignor_must_not_assign_partitions_that_others_own() -> None:
    """`validateCooperativeAssignment`"""
    having = subscription_bytes(Subscription(("t",), owned_partitions=partitions("t-1")))
    wanting = subscription_bytes(Subscription(("t",)))

    assert assign_group("careless", [Careless()], METADATA, [("new", None, wanting), ("old", None, having)])
    with pytest.raises(AssignmentFailed, match="assignor 'careless' assigned t-1 to a new owner before the old one revoked it"):
        assign_group("careless", [Careless()], METADATA, [("old", None, having), ("new", None, wanting)])


def test_a_group_without_members() -> None:
    for assignor in (RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor()):
        assert assign_group(assignor.name, [assignor], METADATA, []) == {}


def test_subscriptions_are_written_in_order_and_read_back() -> None:
    subscription = Subscription(("u", "t"), b"x", partitions("u-0 t-1 t-0"), 5, "rack", "instance")
    data = subscription_bytes(subscription)

    assert read_subscription(data, "instance") == Subscription(("t", "u"), b"x", partitions("t-0 t-1 u-0"), 5, "rack", "instance")
    assert read_subscription(subscription_bytes(subscription, 0)) == Subscription(("t", "u"), b"x")
    assert read_subscription(subscription_bytes(Subscription(("t",), rack_id=""))) == Subscription(("t",))
    assert isinstance(read_subscription(b""), Malformed)


def test_assignments_are_written_and_read_back() -> None:
    assignment = Assignment(partitions("t-0 t-1 u-0"), b"x")

    assert read_assignment(assignment_bytes(assignment)) == assignment
    assert read_assignment(b"") == Assignment()
    assert isinstance(read_assignment(b"\x00"), Malformed)
