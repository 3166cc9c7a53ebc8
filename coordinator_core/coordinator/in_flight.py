"""Commits that are being appended (`pendingOffsetCommits`)."""

from collections import Counter
from collections.abc import Iterable

from coordinator_core.codec.topic_partition import TopicPartition


class CommitsInFlight:
    """Number of commits that are being appended, by group and partition: they do not expire and are unstable."""

    def __init__(self) -> None:
        self._of_group: dict[str, Counter[TopicPartition]] = {}

    def begin(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Counts a commit that was handed to the log."""
        self._of_group.setdefault(group_id, Counter()).update(partitions)

    def end(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Removes a commit that the log has accepted or refused."""
        found = self._of_group[group_id]
        found.subtract(partitions)
        left = +found
        if left:
            self._of_group[group_id] = left
        else:
            del self._of_group[group_id]

    def of(self, group_id: str) -> frozenset[TopicPartition]:
        """Returns the partitions of a group with a commit in flight."""
        return frozenset(self._of_group.get(group_id, ()))
