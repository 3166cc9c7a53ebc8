"""Racks of members and of replicas (KIP-881): fetching from a replica in the member's rack costs less."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from coordinator_core.assignors.assignor import PartitionsByTopic
from coordinator_core.assignors.model import Subscription
from coordinator_core.codec.topic_partition import TopicPartition


def racks_matter(member_racks: Collection[str], partition_racks: Collection[frozenset[str]]) -> bool:
    """True if racks can affect the assignment: a member's rack has replicas, and not every partition is in all racks."""
    all_racks = frozenset().union(*partition_racks)
    return not all_racks.isdisjoint(member_racks) and any(racks != all_racks for racks in partition_racks)


def member_racks(subscriptions: Mapping[str, Subscription]) -> dict[str, str]:
    """Returns the racks of the members that have one; an empty name counts as None."""
    return {member: subscription.rack_id for member, subscription in subscriptions.items() if subscription.rack_id}


@dataclass(frozen=True, slots=True)
class RackMatching:
    """Racks of members and partitions; without members, racks are ignored. A member is near a partition if a replica is in its
    rack."""

    members: Mapping[str, str]
    partitions: Mapping[TopicPartition, frozenset[str]]

    def mismatch(self, member: str, partition: TopicPartition) -> bool:
        """True if the member has a rack and no replica of the partition is in it."""
        rack = self.members.get(member)
        return rack is not None and rack not in self.partitions[partition]

    def next_near(self, partition: TopicPartition, members: list[str], start: int) -> int | None:
        """Returns the index of the first member near the partition, cyclically from `start`; None without one."""
        racks = self.partitions[partition]
        for index in chain(range(start, len(members)), range(start)):
            if self.members.get(members[index]) in racks:
                return index
        return None

    def fewest_near_first(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Sorts partitions by the number of members near them, in ascending order; stable."""
        residents: dict[str, int] = {}
        for rack in self.members.values():
            residents[rack] = residents.get(rack, 0) + 1
        return sorted(partitions, key=lambda partition: sum(residents.get(rack, 0) for rack in self.partitions[partition]))


NO_RACKS = RackMatching({}, {})


def rack_matching(partitions: PartitionsByTopic, subscriptions: Mapping[str, Subscription]) -> RackMatching:
    """Returns the racks of a group, or `NO_RACKS` if they cannot affect the assignment."""
    members = member_racks(subscriptions)
    racks = {TopicPartition(topic, info.partition): info.replica_racks for topic, infos in partitions.items() for info in infos}
    return RackMatching(members, racks) if racks_matter(set(members.values()), racks.values()) else NO_RACKS
