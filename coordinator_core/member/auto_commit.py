"""Automatic commits of a member (`ConsumerCoordinator.maybeAutoCommitOffsetsAsync`, enable.auto.commit)."""

from collections.abc import Collection, Mapping

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.offsets import OffsetToCommit


class AutoCommit:
    """The application's positions in the owned partitions. `interval_ms` None: no position is recorded or committed."""

    def __init__(self, interval_ms: int | None) -> None:
        self._interval_ms = interval_ms
        self._next_at = 0
        self.positions: Mapping[TopicPartition, OffsetToCommit] = {}

    def note(self, positions: Mapping[TopicPartition, OffsetToCommit], owned: Collection[TopicPartition]) -> None:
        """Records the application's positions; partitions that are not owned are ignored."""
        if self._interval_ms is not None:
            self.positions = {**self.positions, **{p: offset for p, offset in positions.items() if p in owned}}

    def keep(self, owned: Collection[TopicPartition]) -> None:
        """Drops the positions of all other partitions."""
        self.positions = {partition: offset for partition, offset in self.positions.items() if partition in owned}

    def begin(self, now_ms: int) -> None:
        """Schedules the next commit, one interval from now."""
        self._next_at = now_ms + (self._interval_ms or 0)

    def due_at(self) -> int | None:
        """Returns the time of the next commit in ms; None if there is nothing to commit."""
        return self._next_at if self.positions else None
