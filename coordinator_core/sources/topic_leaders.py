"""Partitions of any topics by the broker that leads them."""

from typing import Any, NamedTuple

from coordinator_core.sources.kafka_connection import KafkaConnection
from coordinator_core.sources.kafka_topic import NO_LEADER, BrokerError, Leader, Topic, topics_from
from coordinator_core.sources.source import PartitionsByTopic

#: Node → topic → partition → leader.
Leaders = dict[int, dict[str, dict[int, Leader]]]


class PartitionsByLeader(NamedTuple):
    """The partitions that have a leader, by its node, and an error code for each of the others."""

    topics: dict[str, Topic]
    by_node: Leaders
    errors: dict[tuple[str, int], int]


def partitions_by_leader(connection: KafkaConnection, wanted: PartitionsByTopic) -> PartitionsByLeader:
    """Request the metadata of the topics and group the partitions by leader.

    Raises LogError if no broker answers.
    """
    return leaders_from(connection.metadata(sorted(wanted)), wanted)


def leaders_from(metadata: Any, wanted: PartitionsByTopic) -> PartitionsByLeader:
    """Group the partitions by leader, from a Metadata response with their topics."""
    found = topics_from(metadata)
    topics: dict[str, Topic] = {}
    by_node: Leaders = {}
    errors: dict[tuple[str, int], int] = {}
    for name, partitions in wanted.items():
        topic = found.get(name, BrokerError.UNKNOWN_TOPIC_OR_PARTITION)
        if not isinstance(topic, Topic):
            errors |= {(name, partition): topic for partition in partitions}
            continue
        topics[name] = topic
        for partition in partitions:
            leader = topic.leaders.get(partition)
            if leader is None:
                errors[name, partition] = BrokerError.UNKNOWN_TOPIC_OR_PARTITION
            elif leader.node == NO_LEADER:
                errors[name, partition] = BrokerError.LEADER_NOT_AVAILABLE
            else:
                by_node.setdefault(leader.node, {}).setdefault(name, {})[partition] = leader
    return PartitionsByLeader(topics, by_node, errors)
