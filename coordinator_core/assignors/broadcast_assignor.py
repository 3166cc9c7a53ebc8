"""The broadcast assignor: a custom one, that makes a group of consumers hear everything, each of them."""

from collections.abc import Mapping

from coordinator_core.assignors.assignor import Ownership, PartitionAssignor, PartitionsByTopic
from coordinator_core.assignors.model import Subscription, TopicPartition


class BroadcastAssignor(PartitionAssignor):
    """Every member gets every partition of its topics. The group has one committed offset per partition still, the one of whoever
    committed last: members have to keep their positions elsewhere."""

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
