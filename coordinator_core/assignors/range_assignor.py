"""The range assignor: topic by topic, each member gets consecutive partitions (`RangeAssignor`)."""

from collections.abc import Callable, Mapping
from itertools import islice

from coordinator_core.assignors.assignor import Ownership, PartitionAssignor, PartitionsByTopic
from coordinator_core.assignors.member_order import subscribers_by_topic
from coordinator_core.assignors.model import PartitionInfo, Subscription
from coordinator_core.assignors.racks import member_racks, racks_matter
from coordinator_core.codec.topic_partition import TopicPartition


class RangeAssignor(PartitionAssignor):
    """Assigns each subscriber of a topic partitions // subscribers partitions, and the first partitions % subscribers one more.

    Racks are respected if the shares remain the same (KIP-881). For topics with the same subscribers and number of partitions,
    a member gets the same partition numbers of each.
    """

    name = "range"

    def assign_partitions(self, partitions: PartitionsByTopic, subscriptions: Mapping[str, Subscription]) -> Ownership:
        ownership: Ownership = {member: [] for member in subscriptions}
        racks = member_racks(subscriptions)
        subscribers = subscribers_by_topic(subscriptions)
        topics = [_Topic(topic, infos, subscribers[topic], racks, ownership) for topic, infos in partitions.items()]
        if any(topic.racks_matter for topic in topics):
            _assign_near(topics)
        for topic in topics:
            topic.assign_ranges(lambda _member, _partition: True)
        return ownership


class _Topic:
    """A topic whose partitions are being assigned."""

    def __init__(
        self, topic: str, infos: tuple[PartitionInfo, ...], members: list[str], racks: Mapping[str, str], ownership: Ownership
    ) -> None:
        self.members = members
        self.partitions = tuple(info.partition for info in infos)
        self._topic = topic
        self._ownership = ownership
        self._racks = {member: racks[member] for member in members if member in racks}
        self._replica_racks = {info.partition: info.replica_racks for info in infos}
        self._unassigned = dict.fromkeys(self.partitions)
        self._assigned = dict.fromkeys(members, 0)
        self._quota, self._extra = divmod(len(infos), len(members))
        self.racks_matter = racks_matter(set(self._racks.values()), self._replica_racks.values())

    def near(self, member: str, partition: int) -> bool:
        """True if a replica is in the member's rack, or the member has no rack."""
        rack = self._racks.get(member)
        return rack is None or rack in self._replica_racks.get(partition, frozenset())

    def room(self, member: str) -> int:
        """Returns the number of partitions that the member may still get."""
        return max(0, self._quota + (self._extra > 0) - self._assigned[member])

    def assign(self, member: str, partitions: list[int]) -> None:
        self._ownership[member].extend(TopicPartition(self._topic, partition) for partition in partitions)
        self._assigned[member] += len(partitions)
        self._extra -= self._assigned[member] > self._quota
        for partition in partitions:
            del self._unassigned[partition]

    def assign_ranges(self, may: Callable[[str, int], bool]) -> None:
        for member in self.members:
            allowed = (partition for partition in self._unassigned if may(member, partition))
            if run := list(islice(allowed, self.room(member))):
                self.assign(member, run)


def _assign_near(topics: list[_Topic]) -> None:
    """Assigns partitions to members in a replica's rack; co-partitioned topics are assigned together."""
    together: dict[tuple[frozenset[str], tuple[int, ...]], list[_Topic]] = {}
    for topic in topics:
        together.setdefault((frozenset(topic.members), topic.partitions), []).append(topic)
    for alike in together.values():
        if len(alike) > 1:
            _assign_near_together(alike)
        elif alike[0].racks_matter:
            alike[0].assign_ranges(alike[0].near)


def _assign_near_together(topics: list[_Topic]) -> None:
    for partition in topics[0].partitions:
        for member in topics[0].members:
            if all(topic.near(member, partition) and topic.room(member) for topic in topics):
                for topic in topics:
                    topic.assign(member, [partition])
                break
