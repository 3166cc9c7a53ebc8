"""Commits that the log has not confirmed yet (`pendingOffsetCommits`): they protect their partitions, and make them unstable."""

from collections import Counter
from collections.abc import Iterable

from coordinator_core.state.offsets import TopicPartition


class CommitsInFlight:
    """How many commits of a partition of a group are on their way to the log."""

    def __init__(self) -> None:
        self._of_group: dict[str, Counter[TopicPartition]] = {}

    def begin(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """These were handed to the log."""
        self._of_group.setdefault(group_id, Counter()).update(partitions)

    def end(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """The log said what became of them."""
        found = self._of_group[group_id]
        found.subtract(partitions)
        left = +found
        if left:
            self._of_group[group_id] = left
        else:
            del self._of_group[group_id]

    def of(self, group_id: str) -> frozenset[TopicPartition]:
        """Partitions of a group with a commit under way."""
        return frozenset(self._of_group.get(group_id, ()))
