"""Commits that are being appended (`pendingOffsetCommits`)."""

from collections.abc import Iterable

from coordinator_core.codec.topic_partition import TopicPartition


class CommitsInFlight:
    """Number of commits that are being appended, by group and partition: they do not expire and are unstable."""

    def __init__(self) -> None:
        self._of_group: dict[str, dict[TopicPartition, int]] = {}

    def begin(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Counts a commit that was handed to the log."""
        counts = self._of_group.get(group_id)
        if counts is None:
            counts = self._of_group[group_id] = {}
        for partition in partitions:
            counts[partition] = counts.get(partition, 0) + 1

    def end(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Removes a commit that the log has accepted or refused."""
        counts = self._of_group[group_id]
        for partition in partitions:
            left = counts[partition] - 1
            if left:
                counts[partition] = left
            else:
                del counts[partition]
        if not counts:
            del self._of_group[group_id]

    def of(self, group_id: str) -> frozenset[TopicPartition]:
        """Returns the partitions of a group with a commit in flight."""
        return frozenset(self._of_group.get(group_id, ()))
