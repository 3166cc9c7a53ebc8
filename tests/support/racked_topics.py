"""Metadata with replicas in racks, laid out as in Kafka's assignor tests."""

from collections.abc import Mapping, Sequence

from consumer_groups import text_of

from coordinator_core.assignors import Assignment, Cluster, PartitionInfo, Subscription


def racked(topics: Mapping[str, int], replicas: int, broker_racks: Sequence[str | None]) -> Cluster:
    """Replicas of a partition on consecutive brokers; the next partition begins one broker further, through all topics."""
    known = {}
    first = 0
    for topic, count in topics.items():
        known[topic] = tuple(_info(number, first + number, replicas, broker_racks) for number in range(count))
        first += count
    return Cluster(known)


def _info(number: int, first: int, replicas: int, broker_racks: Sequence[str | None]) -> PartitionInfo:
    racks = [broker_racks[(first + replica) % len(broker_racks)] for replica in range(replicas)]
    return PartitionInfo(number, racks[0], frozenset(rack for rack in racks if rack is not None))


def mismatches(metadata: Cluster, subscriptions: Mapping[str, Subscription], assignments: Mapping[str, Assignment]) -> str:
    """Partitions without a replica in the rack of their owner."""
    return text_of(
        tuple(
            partition
            for member, assignment in sorted(assignments.items())
            for partition in assignment.partitions
            if (rack := subscriptions[member].rack_id) is not None
            and rack not in metadata.topics[partition.topic][partition.partition].replica_racks
        )
    )
