"""The rack-aware assignor, a custom one: members read from leaders in their own rack."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from coordinator_core.assignors.assignor import Ownership, PartitionAssignor, PartitionsByTopic
from coordinator_core.assignors.member_order import subscribers_by_topic
from coordinator_core.assignors.model import Subscription
from coordinator_core.codec.topic_partition import TopicPartition


@dataclass(frozen=True)
class RackAwareAssignor(PartitionAssignor):
    """Assigns a partition to the subscriber in its leader's rack that has the fewest partitions, then the partitions without such
    a subscriber to the one with the fewest. Racks precede balance, unlike in the assignors of KIP-881.

    The rack of a member is the user data of its subscription (UTF-8), or without user data the subscription's rack.
    """

    rack: str | None = None

    name = "rack-aware"

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:  # noqa: ARG002
        return None if self.rack is None else self.rack.encode()

    def assign_partitions(self, partitions: PartitionsByTopic, subscriptions: Mapping[str, Subscription]) -> Ownership:
        ownership: Ownership = {member: [] for member in subscriptions}
        racks = {member: _rack(subscription) for member, subscription in subscriptions.items()}
        subscribers = subscribers_by_topic(subscriptions)
        far: list[TopicPartition] = []
        for topic, infos in partitions.items():
            for info in infos:
                partition = TopicPartition(topic, info.partition)
                near = [member for member in subscribers[topic] if racks[member] and racks[member] == info.leader_rack]
                _give_to_poorest(partition, near, ownership) if near else far.append(partition)
        for partition in far:
            _give_to_poorest(partition, subscribers[partition.topic], ownership)
        return ownership


def _give_to_poorest(partition: TopicPartition, members: Iterable[str], ownership: Ownership) -> None:
    ownership[min(members, key=lambda member: len(ownership[member]))].append(partition)


def _rack(subscription: Subscription) -> str | None:
    if subscription.user_data:
        return subscription.user_data.decode(errors="replace")
    return subscription.rack_id or None
