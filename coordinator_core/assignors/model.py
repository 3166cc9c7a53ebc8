"""Input and output of assignors: topics with their partitions, subscriptions, assignments."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from coordinator_core.codec.consumer_protocol import UNKNOWN_GENERATION
from coordinator_core.codec.topic_partition import TopicPartition


class RebalanceProtocol(IntEnum):
    """Handling of owned partitions in a rebalance (KIP-429): EAGER members revoke all before they join, COOPERATIVE ones only the
    partitions that move."""

    EAGER = 0
    COOPERATIVE = 1


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """A partition in the leader's metadata; racks are those of brokers, None or absent if unknown."""

    partition: int
    leader_rack: str | None = None
    replica_racks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Cluster:
    """The topics that the leader of the group knows (`Cluster`)."""

    topics: Mapping[str, tuple[PartitionInfo, ...]]

    @classmethod
    def of_counts(cls, partitions: Mapping[str, int]) -> "Cluster":
        """Returns topics with these numbers of partitions, without racks."""
        return cls({topic: tuple(map(PartitionInfo, range(count))) for topic, count in partitions.items()})


@dataclass(frozen=True, slots=True)
class Subscription:
    """Subscription of a member (`ConsumerPartitionAssignor.Subscription`).

    Cooperative members have `owned_partitions`, and the `generation_id` of their assignment. The `group_instance_id` of a static
    member is not part of the subscription's bytes.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = UNKNOWN_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """Partitions assigned to a member, sorted by topic and partition, and user data of the assignor."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None
