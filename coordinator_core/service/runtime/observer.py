"""Interface between the service and its log and metrics. Calls come from the event loop and must not block."""

from collections.abc import Iterable, Sequence

from coordinator_core.group_coordinator.group_events import GroupEvent
from coordinator_core.transaction_coordinator.events import TransactionEvent


class Observer:
    """The base of the event log and of the metrics; every method does nothing. Times in seconds.

    `partition` is the number of a partition of `__consumer_offsets`, or TOPIC-NUMBER of another log.
    """

    def group_events(self, partition: int | str, group_events: Iterable[GroupEvent]) -> None:
        """Events of the groups of a log partition."""

    def transaction_events(self, partition: int | str, events: Iterable[TransactionEvent]) -> None:
        """Events of the transactions of a log partition."""

    def load_finished(self, partition: int | str, epoch: int, records: int, anomalies: int, seconds: float) -> None:
        """The partition is loaded and answers requests."""

    def unloaded(self, partition: int | str, epoch: int) -> None:
        """Another coordinator owns the partition."""

    def load_failed(self, partition: int | str, reason: str, seconds: float) -> None:
        """The partition cannot be loaded now; the next attempt is in this time."""

    def lost(self, partition: int | str, reason: str) -> None:
        """The outcome of an append is unknown: the partition is loaded again."""

    def fenced(self, partition: int | str, reason: str) -> None:
        """Another coordinator writes the partition, which is unloaded here."""

    def failed(self, partition: int | str, reason: str) -> None:
        """The partition has failed and is unavailable until the service restarts."""

    def partitions_assigned(self, partitions: Sequence[int]) -> None:
        """This node is to own the partitions of the log."""

    def partitions_revoked(self, partitions: Sequence[int]) -> None:
        """This node is to own the partitions of the log no more."""

    def node_group_failed(self, reason: str) -> None:
        """A request of the group of nodes failed; it is repeated."""

    def node_ended(self, node: str) -> None:
        """Another node has ended without leaving; its partitions are assigned to the others."""

    def queued(self, seconds: float) -> None:
        """A request left the queue of its partition after this time."""

    def appended(self, batches: int, seconds: float) -> None:
        """The log appended this number of batches with one write."""

    def append_refused(self, partition: int | str, batches: int, reason: str) -> None:
        """The log rejected the batches; the partition continues."""

    def cleaning_failed(self, reason: str) -> None:
        """Compaction failed; the log continues."""

    def flushed(self, seconds: float) -> None:
        """An fsync finished."""

    def answered(self, api: str, seconds: float) -> None:
        """A request was answered: time from its last byte to the first byte of the response."""

    def errors(self, api: str, names: Iterable[str]) -> None:
        """Kafka's names of the errors in a response."""

    def connected(self) -> None:
        """A client connected."""

    def disconnected(self, client: str, reason: str | None) -> None:
        """A connection ended; `reason` is None when the client closed it."""

    def connection_refused(self, client: str, reason: str) -> None:
        """A connection was closed right after it was accepted."""

    def bug(self, where: str, error: BaseException) -> None:
        """An unexpected error; the service continues."""

    def recovered(self, task: str, failures: int) -> None:
        """A background task succeeded after this number of failures in a row."""
