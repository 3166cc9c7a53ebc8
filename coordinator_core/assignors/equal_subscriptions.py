"""Sticky assignment for members with the same subscription: the shares differ by at most one partition."""

from collections import deque
from collections.abc import Iterable, Mapping

from coordinator_core.assignors.assignor import Ownership
from coordinator_core.assignors.racks import RackMatching
from coordinator_core.codec.topic_partition import TopicPartition


class EqualSubscriptions:
    """The constrained algorithm of `AbstractStickyAssignor` (KIP-54, KAFKA-9987).

    Every member keeps its partitions up to the quota. The other partitions are assigned in turn to members below the quota, first
    to members in a replica's rack if racks matter. The quota is `low`, and `low + 1` for as many members as the remainder.
    """

    def __init__(self, partitions: list[TopicPartition], owned: Mapping[str, list[TopicPartition]], racks: RackMatching) -> None:
        """`partitions` are sorted; `owned` has every member and the partitions that it may keep."""
        self._partitions = partitions
        self._owned = owned
        self._racks = racks
        self._low, self._expected_rich = divmod(len(partitions), len(owned))
        self._high = self._low + (self._expected_rich > 0)
        self._rich = 0
        self._below: list[str] = []
        self._at_low: list[str] = []
        self._ownership: Ownership = {member: [] for member in owned}

    def assign(self) -> Ownership:
        for member in sorted(self._owned):
            self._keep_owned(member)
        kept = {partition for partitions in self._ownership.values() for partition in partitions}
        left = [partition for partition in self._partitions if partition not in kept]
        if self._racks.members:
            left = self._give_to_near(self._racks.fewest_near_first(left))
        self._give_in_turn(left)
        return self._ownership

    def _keep_owned(self, member: str) -> None:
        own = sorted(self._owned[member], key=lambda partition: (partition.partition, partition.topic))
        if len(own) < self._low:
            self._below.append(member)
        elif len(own) >= self._high and self._rich < self._expected_rich:
            del own[self._high :]
            self._become_rich()
        else:
            del own[self._low :]
            if self._rich < self._expected_rich:
                self._at_low.append(member)
        self._ownership[member] = own

    def _give_to_near(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Assigns partitions to members in a replica's rack; returns the partitions for which no such member has room."""
        far: list[TopicPartition] = []
        turn = 0
        for partition in partitions:
            below = self._racks.next_near(partition, self._below, turn)
            if below is not None:
                turn = self._give_to_one_below(partition, below)
            elif not self._give_to_one_at_low(partition):
                far.append(partition)
        return far

    def _give_to_one_below(self, partition: TopicPartition, index: int) -> int:
        """Assigns a partition; returns the index of the next member below the quota."""
        member = self._below[index]
        self._ownership[member].append(partition)
        if len(self._ownership[member]) >= self._low:
            del self._below[index]
            if self._rich < self._expected_rich:
                self._at_low.append(member)
        else:
            index += 1
        return index % len(self._below) if self._below else 0

    def _give_to_one_at_low(self, partition: TopicPartition) -> bool:
        index = self._racks.next_near(partition, self._at_low, 0)
        if index is None:
            return False
        self._ownership[self._at_low.pop(index)].append(partition)
        self._become_rich()
        return True

    def _become_rich(self) -> None:
        self._rich += 1
        if self._rich == self._expected_rich:
            self._at_low.clear()

    def _give_in_turn(self, partitions: Iterable[TopicPartition]) -> None:
        below, at_low = deque(self._below), deque(self._at_low)
        for partition in partitions:
            if not below:
                self._ownership[at_low.popleft()].append(partition)
                continue
            member = below.popleft()
            self._ownership[member].append(partition)
            (at_low if len(self._ownership[member]) == self._low else below).append(member)
