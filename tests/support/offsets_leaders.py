"""Leaders of the offsets topic of a cluster of several brokers, which are the coordinators of its groups."""

from confluent_kafka.admin import AdminClient, PartitionMetadata
from eventually import at_least, equal_to, eventually
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from live_kafka import QUIET
from patience import LIMIT_SECONDS, PATIENCE_SECONDS

OFFSETS = "__consumer_offsets"


def move_leaders(bootstrap: str, replicas: list[int]) -> None:
    """Make the first of `replicas` the leader of every partition of the offsets topic."""
    numbers = range(len(leaders(bootstrap)))
    everywhere = dict.fromkeys((TopicPartition(OFFSETS, number) for number in numbers), replicas)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    try:
        admin.alter_partition_reassignments(everywhere)

        def leading() -> set[int]:
            found = set(leaders(bootstrap))
            if found != {replicas[0]}:
                admin.elect_leaders(0, {OFFSETS: list(numbers)}, raise_errors=False)
            return found

        eventually("the leaders have moved", leading, equal_to({replicas[0]}), pause_seconds=0.5)
    finally:
        admin.close()


def wait_for_replicas(bootstrap: str, count: int) -> None:
    """Wait until all of them are in sync: otherwise the next broker that fails has the only complete copy."""
    eventually(
        "all replicas are in sync",
        lambda: min(len(each.isrs) for each in partitions(bootstrap)),
        at_least(count),
        patience_seconds=LIMIT_SECONDS,
        pause_seconds=0.5,
    )


def leaders(bootstrap: str) -> list[int]:
    """The leader of each partition: the coordinator of the groups there."""
    return [partition.leader for partition in partitions(bootstrap)]


def partitions(bootstrap: str) -> list[PartitionMetadata]:
    """The partitions of the offsets topic."""
    found = AdminClient({"bootstrap.servers": bootstrap, **QUIET}).list_topics(OFFSETS, timeout=PATIENCE_SECONDS).topics[OFFSETS]
    return list(found.partitions.values())
