"""The random assignor, a custom one: each partition is assigned to a random subscriber."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from coordinator_core.assignors.assignor import Ownership, PartitionAssignor, PartitionsByTopic, topic_partitions
from coordinator_core.assignors.member_order import subscribers_by_topic
from coordinator_core.assignors.model import Subscription


@dataclass(frozen=True)
class RandomAssignor(PartitionAssignor):
    """Assigns each partition to a random subscriber of its topic. `draw(n)` must return a number from 0 to n - 1; with a seeded
    source, assignments are reproducible."""

    draw: Callable[[int], int]

    name = "random"

    def assign_partitions(self, partitions: PartitionsByTopic, subscriptions: Mapping[str, Subscription]) -> Ownership:
        ownership: Ownership = {member: [] for member in subscriptions}
        subscribers = subscribers_by_topic(subscriptions)
        for partition in topic_partitions(partitions):
            members = subscribers[partition.topic]
            ownership[members[self.draw(len(members))]].append(partition)
        return ownership
