"""Polls without the topics that are not read."""

from uuid import UUID

from coordinator_core.codec.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    protocol_version,
)
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ProtocolTopicPartitions,
)
from coordinator_core.group_polls.group_poll import (
    ClassicGroupAnswer,
    ClassicMemberAnswer,
    ConsumerGroupAnswer,
    ConsumerMemberAnswer,
    GroupAnswer,
    GroupPoll,
    PolledGroup,
    PolledOffset,
    ShareGroupAnswer,
    ShareMemberAnswer,
    StreamsGroupAnswer,
    SubtopologyAnswer,
    TopicPartitionKey,
    TopologyAnswer,
)
from coordinator_core.group_polls.topic_selection import of_topics

ORDERS, LOGS, UNKNOWN = (UUID(int=number) for number in (1, 2, 3))
NAMES = {ORDERS: "orders", LOGS: "logs"}
BOTH = (ProtocolTopicPartitions("logs", (0,)), ProtocolTopicPartitions("orders", (0, 1)))


def selected(group: PolledGroup) -> PolledGroup:
    poll = GroupPoll(1, 2, {"app": group}, topic_names=NAMES, hidden_topics=frozenset({"logs", "secret"}))
    found = of_topics(poll, lambda topic: topic != "logs")
    assert found.hidden_topics == {"secret"}
    return found.groups["app"]


def description(answer: GroupAnswer) -> GroupAnswer | None:
    return selected(PolledGroup(answer)).description


def member(assignment: bytes, subscription: bytes = b"") -> ClassicMemberAnswer:
    return ClassicMemberAnswer("m", None, "client", "/host", subscription, assignment)


def test_offsets_of_other_topics_are_left_out() -> None:
    offset = PolledOffset(7, -1, "")
    keys = [TopicPartitionKey(topic, 0) for topic in ("orders", "logs")]
    found = selected(PolledGroup(None, dict.fromkeys(keys, offset), frozenset({TopicPartitionKey("logs", 1)})))
    assert (found.offsets, found.without_commit) == ({keys[0]: offset}, frozenset())


def test_a_group_with_offsets_of_other_topics_alone_is_not_absent() -> None:
    assert not selected(PolledGroup(None, {TopicPartitionKey("logs", 0): PolledOffset(7, -1, "")})).is_absent
    assert selected(PolledGroup(None)).is_absent


def test_classic_members_have_no_partitions_of_other_topics() -> None:
    assignment = encode_assignment(ConsumerProtocolAssignment(BOTH, b"data"), 1)
    subscription = encode_subscription(ConsumerProtocolSubscription(("logs", "orders"), b"data", BOTH, 4), 2)
    found = description(ClassicGroupAnswer("Stable", "consumer", "range", (member(assignment, subscription),)))
    assert isinstance(found, ClassicGroupAnswer)
    (kept,) = found.members
    assert decode_assignment(kept.assignment) == ConsumerProtocolAssignment(BOTH[1:], b"data")
    assert decode_subscription(kept.subscription) == ConsumerProtocolSubscription(("logs", "orders"), b"data", BOTH[1:], 4)
    assert (protocol_version(kept.assignment), protocol_version(kept.subscription)) == (1, 2)


def test_bytes_that_are_not_about_other_topics_are_kept() -> None:
    newer = encode_assignment(ConsumerProtocolAssignment(BOTH[1:]), 3)[2:]
    members = tuple(map(member, (b"", b"\xff", b"\x00\x09" + newer)))
    answer = ClassicGroupAnswer("Stable", "consumer", "range", members)
    assert description(answer) == answer
    connect = ClassicGroupAnswer("Stable", "connect", "", (member(encode_assignment(ConsumerProtocolAssignment(BOTH))),))
    assert description(connect) == connect


def test_members_of_newer_groups_have_no_partitions_of_other_topics() -> None:
    parts, kept = ((ORDERS, (0, 1)), (LOGS, (0,)), (UNKNOWN, (5,))), ((ORDERS, (0, 1)), (UNKNOWN, (5,)))
    consumer = ConsumerMemberAnswer("m", None, None, 1, "client", "/host", ("logs", "orders"), None, parts, parts)
    found = description(ConsumerGroupAnswer("Stable", 1, 1, "uniform", (consumer,)))
    assert isinstance(found, ConsumerGroupAnswer)
    assert [(each.assigned, each.target, each.subscribed_topic_names) for each in found.members] == [
        (kept, kept, ("logs", "orders"))
    ]
    sharing = description(ShareGroupAnswer("Stable", 1, 1, (ShareMemberAnswer("m", None, 1, "client", "/host", (), parts),)))
    assert isinstance(sharing, ShareGroupAnswer)
    assert [each.assigned for each in sharing.members] == [kept]


def test_tasks_of_streams_groups_are_of_the_topics_that_are_read() -> None:
    topology = TopologyAnswer(1, (SubtopologyAnswer("0", ("logs", "orders"), ("logs",), ("logs", "again")),))
    found = description(StreamsGroupAnswer("Stable", 1, 1, topology, ()))
    assert found == StreamsGroupAnswer(
        "Stable", 1, 1, TopologyAnswer(1, (SubtopologyAnswer("0", ("orders",), ("logs",), ("again",)),)), ()
    )
    unknown = StreamsGroupAnswer("NotReady", 1, 1, TopologyAnswer(1, None), ())
    assert description(unknown) == unknown
