"""Base classes of assignors: `ConsumerPartitionAssignor`, and `AbstractPartitionAssignor` for those without user data."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import ClassVar, Self

from coordinator_core.assignors.model import Assignment, Cluster, PartitionInfo, RebalanceProtocol, Subscription
from coordinator_core.codec.topic_partition import TopicPartition

#: Topics and their partitions, both sorted.
PartitionsByTopic = Mapping[str, tuple[PartitionInfo, ...]]
#: Assigned partitions by member, including members without partitions.
Ownership = dict[str, list[TopicPartition]]


class Assignor(ABC):
    """Assigns the partitions of subscribed topics to the members of a group. Immutable: `on_assignment` returns a new assignor.

    `name` is the protocol's name in JoinGroup; a member uses the highest of `supported_protocols` that all its assignors have.
    """

    name: ClassVar[str]
    supported_protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:  # noqa: ARG002
        """Returns the user data of a member's subscription to `topics`."""
        return None

    @abstractmethod
    def assign(self, metadata: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """Returns the leader's assignment of every member, by member id. The same input gives the same output."""

    def on_assignment(self, assignment: Assignment, generation: int) -> Self:  # noqa: ARG002
        """Returns the assignor of a member after its assignment in a generation."""
        return self


class PartitionAssignor(Assignor):
    """An assignor that needs only the partitions of known topics (`AbstractPartitionAssignor`)."""

    def assign(self, metadata: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        ownership = self.assign_partitions(subscribed_partitions(metadata, subscriptions), subscriptions)
        return {member: Assignment(tuple(sorted(partitions))) for member, partitions in ownership.items()}

    @abstractmethod
    def assign_partitions(self, partitions: PartitionsByTopic, subscriptions: Mapping[str, Subscription]) -> Ownership:
        """Returns the ownership of all `partitions`, in any order."""


def subscribed_partitions(metadata: Cluster, subscriptions: Mapping[str, Subscription]) -> PartitionsByTopic:
    """Returns the partitions of all subscribed topics; topics that are unknown or without partitions are skipped."""
    topics = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
    return {topic: tuple(sorted(known, key=_number)) for topic in topics if (known := metadata.topics.get(topic))}


def topic_partitions(partitions: PartitionsByTopic) -> list[TopicPartition]:
    """Returns all partitions, topic by topic."""
    return [TopicPartition(topic, info.partition) for topic, infos in partitions.items() for info in infos]


def _number(info: PartitionInfo) -> int:
    return info.partition
