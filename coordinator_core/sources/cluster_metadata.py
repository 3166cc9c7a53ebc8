"""Brokers of a cluster, and leaders and replicas of topics, from a Metadata response."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from coordinator_core.codec.uuids import uuid_text
from coordinator_core.sources.kafka_topic import NO_LEADER, BrokerError, topic_ids_from


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """A broker that is alive."""

    node_id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class Replicas:
    """Leader and replicas of a partition. `leader` is None while it has none; the first replica is the preferred leader."""

    topic: str
    partition: int
    topic_id: str | None
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True)
class ClusterMetadata:
    """A Metadata response, in the order of node ids and of topics and partitions. Topics with an error are missing.

    `release` is the newest one whose requests the broker accepts that answered; None if unknown.
    """

    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[LiveBroker, ...]
    partitions: tuple[Replicas, ...]
    release: str | None = None

    @classmethod
    def of(cls, response: Any, release: str | None = None) -> "ClusterMetadata":
        """Read a response of any version that the client library speaks."""
        ids = {name: uuid_text(topic_id) for topic_id, name in topic_ids_from(response).items()}
        brokers = (LiveBroker(each.node_id, each.host, each.port, getattr(each, "rack", None)) for each in response.brokers or ())
        partitions = (
            Replicas(
                topic.name,
                each.partition_index,
                ids.get(topic.name),
                None if each.leader_id == NO_LEADER else each.leader_id,
                tuple(each.replica_nodes or ()),
                tuple(each.isr_nodes or ()),
            )
            for topic in response.topics or ()
            if topic.error_code == BrokerError.NONE and topic.name
            for each in topic.partitions or ()
        )
        controller = getattr(response, "controller_id", NO_LEADER)
        return cls(
            getattr(response, "cluster_id", None),
            None if controller in (None, NO_LEADER) else controller,
            tuple(sorted(brokers, key=lambda broker: broker.node_id)),
            _in_order(partitions),
            release,
        )

    def updated(self, newer: "ClusterMetadata") -> "ClusterMetadata":
        """A newer response; the topics that it does not have are those of this one."""
        topics = {each.topic for each in newer.partitions}
        kept = (each for each in self.partitions if each.topic not in topics)
        return replace(newer, partitions=_in_order((*kept, *newer.partitions)))


def _in_order(partitions: Iterable[Replicas]) -> tuple[Replicas, ...]:
    return tuple(sorted(partitions, key=lambda each: (each.topic, each.partition)))
