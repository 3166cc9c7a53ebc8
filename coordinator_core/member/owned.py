"""What a member owns, and what changes of that it has to tell."""

from collections.abc import Iterable

from coordinator_core.assignors import RebalanceProtocol, TopicPartition
from coordinator_core.member.effects import Event, PartitionsAssigned, PartitionsLost, PartitionsRevoked


class OwnedPartitions:
    """Partitions of one member. Each method that changes them returns the events of that."""

    def __init__(self, protocol: RebalanceProtocol) -> None:
        self.partitions: tuple[TopicPartition, ...] = ()
        self._cooperative = protocol is RebalanceProtocol.COOPERATIVE

    def prepare_to_join(self, topics: frozenset[str]) -> list[Event]:
        """Before a JoinGroup: an eager member gives up everything, a cooperative one what it no longer wants."""
        kept = {partition for partition in self.partitions if self._cooperative and partition.topic in topics}
        revoked = tuple(partition for partition in self.partitions if partition not in kept)
        self.partitions = tuple(sorted(kept))
        return [PartitionsRevoked(revoked)] if revoked else []

    def take(self, assigned: Iterable[TopicPartition]) -> list[Event]:
        """After a SyncGroup: `revoked` before `assigned`."""
        target = set(assigned)
        revoked = tuple(partition for partition in self.partitions if partition not in target)
        added = tuple(sorted(target.difference(self.partitions)))
        self.partitions = tuple(sorted(target))
        return [*([PartitionsRevoked(revoked)] if revoked else []), PartitionsAssigned(added)]

    def give_up(self) -> list[Event]:
        """While the membership is good still."""
        given, self.partitions = self.partitions, ()
        return [PartitionsRevoked(given)] if given else []

    def lose(self) -> list[Event]:
        """When it is not."""
        lost, self.partitions = self.partitions, ()
        return [PartitionsLost(lost)] if lost else []
