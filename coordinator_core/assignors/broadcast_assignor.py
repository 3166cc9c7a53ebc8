"""The broadcast assignor, a custom one: every member gets every partition."""

from collections.abc import Mapping

from coordinator_core.assignors.assignor import Ownership, PartitionAssignor, PartitionsByTopic
from coordinator_core.assignors.model import Subscription
from coordinator_core.codec.topic_partition import TopicPartition


class BroadcastAssignor(PartitionAssignor):
    """Assigns every partition of its topics to every member. Members must store their own positions: the group has one committed
    offset per partition, the last one that any member committed."""

    name = "broadcast"

    def assign_partitions(self, partitions: PartitionsByTopic, subscriptions: Mapping[str, Subscription]) -> Ownership:
        return {
            member: [
                TopicPartition(topic, info.partition)
                for topic in dict.fromkeys(subscription.topics)
                for info in partitions.get(topic, ())
            ]
            for member, subscription in subscriptions.items()
        }
