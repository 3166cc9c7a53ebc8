"""What an assignor is (`ConsumerPartitionAssignor`), and what those have in common that look at no user data."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import ClassVar, Self

from coordinator_core.assignors.model import (
    Assignment,
    ClusterMetadata,
    PartitionInfo,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)

#: Partitions in order, of topics in order.
PartitionsByTopic = Mapping[str, tuple[PartitionInfo, ...]]
#: Who is to own what; a member without partitions is in it too.
Ownership = dict[str, list[TopicPartition]]


class Assignor(ABC):
    """Shares the partitions of subscribed topics out among the members of a group. A value: what it learns is another assignor.

    `name` is the protocol's name in JoinGroup; members pick the highest of `supported_protocols` that all their assignors have.
    """

    name: ClassVar[str]
    supported_protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:  # noqa: ARG002
        """What a member tells the leader in its subscription, beside its `topics`."""
        return None

    @abstractmethod
    def assign(self, metadata: ClusterMetadata, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """The leader's work: an assignment for every member (by member id). The same input gives the same output."""

    def on_assignment(self, assignment: Assignment, generation: int) -> Self:  # noqa: ARG002
        """The assignor of a member after it got its assignment in a generation."""
        return self


class PartitionAssignor(Assignor):
    """An assignor that decides about partitions of known topics alone (`AbstractPartitionAssignor`)."""

    def assign(self, metadata: ClusterMetadata, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        ownership = self.assign_partitions(subscribed_partitions(metadata, subscriptions), subscriptions)
        return {member: Assignment(tuple(sorted(partitions))) for member, partitions in ownership.items()}

    @abstractmethod
    def assign_partitions(self, partitions: PartitionsByTopic, subscriptions: Mapping[str, Subscription]) -> Ownership:
        """Who is to own which of the `partitions`, in any order."""


def subscribed_partitions(metadata: ClusterMetadata, subscriptions: Mapping[str, Subscription]) -> PartitionsByTopic:
    """Partitions of the topics to which anybody subscribes; topics that are unknown or without partitions are skipped."""
    topics = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
    return {topic: tuple(sorted(known, key=_number)) for topic in topics if (known := metadata.topics.get(topic))}


def topic_partitions(partitions: PartitionsByTopic) -> list[TopicPartition]:
    """All of them, topic by topic."""
    return [TopicPartition(topic, info.partition) for topic, infos in partitions.items() for info in infos]


def _number(info: PartitionInfo) -> int:
    return info.partition
