"""Moves of partitions between members in one assignment, recorded so that no two members swap partitions of a topic."""

from coordinator_core.codec.topic_partition import TopicPartition


class Movements:
    """Partitions that have left their first owner (`PartitionMovements`).

    If a partition of a topic should move from A to B, and another one has moved from B to A, the second returns to B instead and
    the first does not move: the shares are the same, with fewer moves.
    """

    def __init__(self) -> None:
        self._moves: dict[TopicPartition, tuple[str, str]] = {}
        self._moved: dict[tuple[str, str, str], dict[TopicPartition, None]] = {}

    def move(self, partition: TopicPartition, owner: str, new_owner: str) -> dict[TopicPartition, str]:
        """Returns the moved partitions' new owners, so that `owner` has one fewer of the topic and `new_owner` one more."""
        first_owner = self._moves[partition][0] if partition in self._moves else owner
        returning = self._moved.get((partition.topic, new_owner, first_owner))
        if not returning or first_owner == new_owner:
            return {partition: self._record(partition, first_owner, new_owner)}
        other = next(iter(returning))
        changes = {other: self._record(other, new_owner, new_owner)}
        if first_owner != owner:
            changes[partition] = self._record(partition, first_owner, first_owner)
        return changes

    def _record(self, partition: TopicPartition, first_owner: str, new_owner: str) -> str:
        if partition in self._moves:
            source, target = self._moves.pop(partition)
            del self._moved[partition.topic, source, target][partition]
        if first_owner != new_owner:
            self._moves[partition] = (first_owner, new_owner)
            self._moved.setdefault((partition.topic, first_owner, new_owner), {})[partition] = None
        return new_owner
