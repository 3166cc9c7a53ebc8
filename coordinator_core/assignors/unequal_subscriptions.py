"""Sticky assignment for members with different subscriptions: as balanced as these permit."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping

from coordinator_core.assignors.assignor import Ownership
from coordinator_core.assignors.racks import RackMatching
from coordinator_core.codec.topic_partition import TopicPartition


class UnequalSubscriptions:
    """The general algorithm of `AbstractStickyAssignor` (KIP-54).

    Members keep owned partitions of subscribed topics. Each other partition is assigned to its subscriber with the fewest
    partitions. Then partitions move from members to members with at least two fewer, until no such move is possible. Every move
    makes the shares more equal, so this ends, and no move must be reverted (Kafka compares scores instead).
    """

    def __init__(
        self,
        partitions: Mapping[str, list[TopicPartition]],
        subscribers: Mapping[str, frozenset[str]],
        owned: Mapping[str, list[TopicPartition]],
        former: Mapping[TopicPartition, str],
        racks: RackMatching,
        revoking: bool,
    ) -> None:
        """`partitions` and their `subscribers` are by topic; `owned` has every member and the partitions that it may keep;
        `former` has the former owners; `revoking` is True if a member must give up an owned partition."""
        self._subscribers = subscribers
        self._former = former
        self._racks = racks
        topics = sorted(partitions, key=lambda topic: (len(subscribers[topic]), topic))
        self._partitions = [partition for topic in topics for partition in partitions[topic]]
        self._owner: dict[TopicPartition, str] = {}
        self._revoking = revoking
        for member in sorted(owned):
            self._owner |= dict.fromkeys(owned[member], member)
        self._load = Load((member, len(owned[member])) for member in owned)
        self._movements = Movements()
        self._poorest: dict[str, str] = {}

    def assign(self) -> Ownership:
        unassigned = [partition for partition in self._partitions if partition not in self._owner]
        far = unassigned
        if self._racks.members:
            far = [partition for partition in unassigned if not self._give(partition, self._is_near)]
        for partition in far:
            self._give(partition, _any_member)
        if not self._revoking:
            self._balance(unassigned)
        self._balance(self._partitions)
        ownership: Ownership = {member: [] for member in self._load}
        for partition, owner in self._owner.items():
            ownership[owner].append(partition)
        return ownership

    def _is_near(self, member: str, partition: TopicPartition) -> bool:
        return not self._racks.mismatch(member, partition)

    def _give(self, partition: TopicPartition, may: Callable[[str, TopicPartition], bool]) -> bool:
        subscribers = self._subscribers[partition.topic]
        for member in self._load:
            if member in subscribers and may(member, partition):
                self._owner[partition] = member
                self._load.change(member, 1)
                return True
        return False

    def _balance(self, partitions: Iterable[TopicPartition]) -> None:
        """Moves partitions while a move makes the shares more equal."""
        movable = [partition for partition in partitions if len(self._subscribers[partition.topic]) > 1]
        moved = True
        while moved:
            moved = False
            for partition in movable:
                new_owner = self._better_owner(partition)
                if new_owner is not None:
                    self._move(partition, new_owner)
                    moved = True

    def _better_owner(self, partition: TopicPartition) -> str | None:
        enough = self._load[self._owner[partition]] - 1
        former = self._former.get(partition)
        if former in self._subscribers[partition.topic] and self._load[former] < enough:
            return former
        poorest = self._poorest_subscriber(partition.topic)
        return poorest if self._load[poorest] < enough else None

    def _poorest_subscriber(self, topic: str) -> str:
        if topic not in self._poorest:
            subscribers = self._subscribers[topic]
            self._poorest[topic] = next(member for member in self._load if member in subscribers)
        return self._poorest[topic]

    def _move(self, partition: TopicPartition, new_owner: str) -> None:
        self._load.change(self._owner[partition], -1)
        self._load.change(new_owner, 1)
        self._poorest.clear()
        for moved, owner in self._movements.move(partition, self._owner[partition], new_owner).items():
            self._owner[moved] = owner


def _any_member(_member: str, _partition: TopicPartition) -> bool:
    return True


class Load:
    """Number of partitions by member; iterates over the members from fewest to most partitions, then by id."""

    def __init__(self, sizes: Iterable[tuple[str, int]]) -> None:
        self._sizes = dict(sizes)
        self._order = sorted((size, member) for member, size in self._sizes.items())

    def __getitem__(self, member: str) -> int:
        return self._sizes[member]

    def __iter__(self) -> Iterator[str]:
        return (member for _, member in self._order)

    def change(self, member: str, by: int) -> None:
        size = self._sizes[member]
        del self._order[bisect_left(self._order, (size, member))]
        self._sizes[member] = size + by
        insort(self._order, (size + by, member))


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
