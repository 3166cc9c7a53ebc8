"""Encoding and decoding of subscriptions and assignments in JoinGroup and SyncGroup (`ConsumerProtocol`)."""

from collections.abc import Iterable

from coordinator_core.assignors.model import Assignment, Subscription
from coordinator_core.codec import (
    Malformed,
    NoAssignment,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from coordinator_core.codec.consumer_protocol import HIGHEST_VERSION
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ProtocolTopicPartitions,
)
from coordinator_core.codec.topic_partition import TopicPartition


def subscription_bytes(subscription: Subscription, version: int = HIGHEST_VERSION) -> bytes:
    """Encodes a subscription in version 0–3, with topics and owned partitions sorted as by Java clients. Fields that the version
    lacks are left out.

    Raises ValueError for other versions and for values that cannot be encoded.
    """
    return encode_subscription(
        ConsumerProtocolSubscription(
            tuple(sorted(subscription.topics)),
            subscription.user_data,
            grouped_partitions(sorted(subscription.owned_partitions)),
            subscription.generation_id,
            subscription.rack_id,
        ),
        version,
    )


def read_subscription(data: bytes, group_instance_id: str | None = None) -> Subscription | Malformed:
    """Decodes the subscription of a member; an empty rack counts as None."""
    read = decode_subscription(data)
    if isinstance(read, Malformed):
        return read
    owned = flat_partitions(read.owned_partitions)
    return Subscription(read.topics, read.user_data, owned, read.generation_id, read.rack_id or None, group_instance_id)


def assignment_bytes(assignment: Assignment, version: int = HIGHEST_VERSION) -> bytes:
    """Encodes an assignment in version 0–3. Raises ValueError for other versions and for values that cannot be encoded."""
    return encode_assignment(ConsumerProtocolAssignment(grouped_partitions(assignment.partitions), assignment.user_data), version)


def read_assignment(data: bytes) -> Assignment | Malformed:
    """Decodes the assignment of a member; empty bytes assign no partitions."""
    read = decode_assignment(data)
    if isinstance(read, Malformed):
        return read
    if isinstance(read, NoAssignment):
        return Assignment()
    return Assignment(tuple(sorted(flat_partitions(read.assigned_partitions))), read.user_data)


def grouped_partitions(partitions: Iterable[TopicPartition]) -> tuple[ProtocolTopicPartitions, ...]:
    """Groups partitions by topic, in the order of their first occurrence."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return tuple(ProtocolTopicPartitions(topic, tuple(numbers)) for topic, numbers in by_topic.items())


def flat_partitions(topics: Iterable[ProtocolTopicPartitions]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic.topic, partition) for topic in topics for partition in topic.partitions)
