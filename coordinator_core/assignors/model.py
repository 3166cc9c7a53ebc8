"""What an assignor gets and gives: topics with their partitions, what members subscribe to, what each of them is to own."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from coordinator_core.codec.consumer_protocol import UNKNOWN_GENERATION


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class RebalanceProtocol(IntEnum):
    """What members do with their partitions while the group rebalances (KIP-429): give all up, or keep what they keep."""

    EAGER = 0
    COOPERATIVE = 1


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """A partition as the leader of the group sees it in the metadata; racks are those of brokers, None or absent if unknown."""

    partition: int
    leader_rack: str | None = None
    replica_racks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """The topics that the leader of the group knows (`Cluster`)."""

    topics: Mapping[str, tuple[PartitionInfo, ...]]

    @classmethod
    def of_counts(cls, partitions: Mapping[str, int]) -> "ClusterMetadata":
        """Topics by their numbers of partitions, of which no rack is known."""
        return cls({topic: tuple(map(PartitionInfo, range(count))) for topic, count in partitions.items()})


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member brings to an assignment (`ConsumerPartitionAssignor.Subscription`).

    `owned_partitions`, and the `generation_id` in which they were got, are of members that keep partitions while they rebalance.
    The `group_instance_id` of a static member comes beside the subscription's bytes.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = UNKNOWN_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a member is to own, in order of topic and partition, and what the assignor tells it beside."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None
