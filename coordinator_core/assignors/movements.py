"""Which partitions moved between which members in one assignment, so that no two members swap partitions of a topic."""

from coordinator_core.assignors.model import TopicPartition


class Movements:
    """Partitions away from where they were (`PartitionMovements`).

    If one of a topic is to go from A to B, and another one has gone from B to A, that one goes home instead and the first stays:
    shares are as large, and fewer partitions have moved.
    """

    def __init__(self) -> None:
        self._way: dict[TopicPartition, tuple[str, str]] = {}
        self._away: dict[tuple[str, str, str], dict[TopicPartition, None]] = {}

    def move(self, partition: TopicPartition, owner: str, new_owner: str) -> dict[TopicPartition, str]:
        """New owners of the partitions that change theirs, so that `owner` has one less of the topic and `new_owner` one more."""
        home = self._way[partition][0] if partition in self._way else owner
        returning = self._away.get((partition.topic, new_owner, home))
        if not returning or home == new_owner:
            return {partition: self._go(partition, home, new_owner)}
        other = next(iter(returning))
        changes = {other: self._go(other, new_owner, new_owner)}
        if home != owner:
            changes[partition] = self._go(partition, home, home)
        return changes

    def _go(self, partition: TopicPartition, home: str, new_owner: str) -> str:
        if partition in self._way:
            source, target = self._way.pop(partition)
            del self._away[partition.topic, source, target][partition]
        if home != new_owner:
            self._way[partition] = (home, new_owner)
            self._away.setdefault((partition.topic, home, new_owner), {})[partition] = None
        return new_owner
