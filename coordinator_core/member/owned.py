"""Partitions that a member owns, and the events of their changes."""

from collections.abc import Iterable

from coordinator_core.assignors import RebalanceProtocol, TopicPartition
from coordinator_core.member.effects import Event, PartitionsAssigned, PartitionsLost, PartitionsRevoked


class OwnedPartitions:
    """Partitions of one member. Each method that changes them returns the events of the change."""

    def __init__(self, protocol: RebalanceProtocol) -> None:
        self.partitions: tuple[TopicPartition, ...] = ()
        self._cooperative = protocol is RebalanceProtocol.COOPERATIVE

    def prepare_to_join(self, topics: frozenset[str]) -> list[Event]:
        """Revokes partitions before a JoinGroup: all of an eager member, unsubscribed topics of a cooperative one."""
        kept = {partition for partition in self.partitions if self._cooperative and partition.topic in topics}
        revoked = tuple(partition for partition in self.partitions if partition not in kept)
        self.partitions = tuple(sorted(kept))
        return [PartitionsRevoked(revoked)] if revoked else []

    def take(self, assigned: Iterable[TopicPartition]) -> list[Event]:
        """Applies the assignment of a SyncGroup; the revocation precedes the assignment."""
        target = set(assigned)
        revoked = tuple(partition for partition in self.partitions if partition not in target)
        added = tuple(sorted(target.difference(self.partitions)))
        self.partitions = tuple(sorted(target))
        return [*([PartitionsRevoked(revoked)] if revoked else []), PartitionsAssigned(added)]

    def give_up(self) -> list[Event]:
        """Revokes all partitions, with a valid membership."""
        given, self.partitions = self.partitions, ()
        return [PartitionsRevoked(given)] if given else []

    def lose(self) -> list[Event]:
        """Drops all partitions as lost, after the membership has ended."""
        lost, self.partitions = self.partitions, ()
        return [PartitionsLost(lost)] if lost else []
