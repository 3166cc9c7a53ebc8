"""Positions that a member commits by itself (`ConsumerCoordinator.maybeAutoCommitOffsetsAsync`, enable.auto.commit)."""

from collections.abc import Collection, Mapping

from coordinator_core.coordinator.messages.offsets import OffsetToCommit
from coordinator_core.state.offsets import TopicPartition


class AutoCommit:
    """How far the application is in the partitions that the member owns. `interval_ms` None: nothing is noted or committed."""

    def __init__(self, interval_ms: int | None) -> None:
        self._interval_ms = interval_ms
        self._next_at = 0
        self.positions: Mapping[TopicPartition, OffsetToCommit] = {}

    def note(self, positions: Mapping[TopicPartition, OffsetToCommit], owned: Collection[TopicPartition]) -> None:
        """The application is this far; what is not owned is passed over."""
        if self._interval_ms is not None:
            self.positions = {**self.positions, **{p: offset for p, offset in positions.items() if p in owned}}

    def keep(self, owned: Collection[TopicPartition]) -> None:
        """Other partitions are somebody else's now."""
        self.positions = {partition: offset for partition, offset in self.positions.items() if partition in owned}

    def begin(self, now_ms: int) -> None:
        """The next commit is due one interval from now."""
        self._next_at = now_ms + (self._interval_ms or 0)

    def due_at(self) -> int | None:
        """When to commit; None while there is nothing to."""
        return self._next_at if self.positions else None
