"""The round-robin assignor: all partitions of all topics, assigned in turn (`RoundRobinAssignor`)."""

from collections.abc import Mapping

from coordinator_core.assignors.assignor import Ownership, PartitionAssignor, PartitionsByTopic, topic_partitions
from coordinator_core.assignors.member_order import members_in_order
from coordinator_core.assignors.model import Subscription


class RoundRobinAssignor(PartitionAssignor):
    """Assigns partitions to the members in turn. A member that does not subscribe to the partition's topic loses its turn, so
    unequal subscriptions lead to unequal shares."""

    name = "roundrobin"

    def assign_partitions(self, partitions: PartitionsByTopic, subscriptions: Mapping[str, Subscription]) -> Ownership:
        ownership: Ownership = {member: [] for member in subscriptions}
        members = members_in_order(subscriptions)
        topics = {member: frozenset(subscription.topics) for member, subscription in subscriptions.items()}
        turn = 0
        for partition in topic_partitions(partitions):
            while partition.topic not in topics[members[turn]]:
                turn = (turn + 1) % len(members)
            ownership[members[turn]].append(partition)
            turn = (turn + 1) % len(members)
        return ownership
