"""An observer made of several observers."""

from collections.abc import Iterable, Sequence

from coordinator_core.group_coordinator.group_events import GroupEvent
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.transaction_coordinator.events import TransactionEvent


class CompositeObserver(Observer):
    """Passes every call to each of `observers`, in their order."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def group_events(self, partition: int | str, group_events: Iterable[GroupEvent]) -> None:
        group_events = tuple(group_events)
        for observer in self._observers:
            observer.group_events(partition, group_events)

    def transaction_events(self, partition: int | str, events: Iterable[TransactionEvent]) -> None:
        events = tuple(events)
        for observer in self._observers:
            observer.transaction_events(partition, events)

    def load_finished(self, partition: int | str, epoch: int, records: int, anomalies: int, seconds: float) -> None:
        for observer in self._observers:
            observer.load_finished(partition, epoch, records, anomalies, seconds)

    def unloaded(self, partition: int | str, epoch: int) -> None:
        for observer in self._observers:
            observer.unloaded(partition, epoch)

    def load_failed(self, partition: int | str, reason: str, seconds: float) -> None:
        for observer in self._observers:
            observer.load_failed(partition, reason, seconds)

    def lost(self, partition: int | str, reason: str) -> None:
        for observer in self._observers:
            observer.lost(partition, reason)

    def fenced(self, partition: int | str, reason: str) -> None:
        for observer in self._observers:
            observer.fenced(partition, reason)

    def failed(self, partition: int | str, reason: str) -> None:
        for observer in self._observers:
            observer.failed(partition, reason)

    def partitions_assigned(self, partitions: Sequence[int]) -> None:
        for observer in self._observers:
            observer.partitions_assigned(partitions)

    def partitions_revoked(self, partitions: Sequence[int]) -> None:
        for observer in self._observers:
            observer.partitions_revoked(partitions)

    def node_group_failed(self, reason: str) -> None:
        for observer in self._observers:
            observer.node_group_failed(reason)

    def node_ended(self, node: str) -> None:
        for observer in self._observers:
            observer.node_ended(node)

    def queued(self, seconds: float) -> None:
        for observer in self._observers:
            observer.queued(seconds)

    def appended(self, batches: int, seconds: float) -> None:
        for observer in self._observers:
            observer.appended(batches, seconds)

    def append_refused(self, partition: int | str, batches: int, reason: str) -> None:
        for observer in self._observers:
            observer.append_refused(partition, batches, reason)

    def cleaning_failed(self, reason: str) -> None:
        for observer in self._observers:
            observer.cleaning_failed(reason)

    def flushed(self, seconds: float) -> None:
        for observer in self._observers:
            observer.flushed(seconds)

    def answered(self, api: str, seconds: float) -> None:
        for observer in self._observers:
            observer.answered(api, seconds)

    def errors(self, api: str, names: Iterable[str]) -> None:
        names = tuple(names)
        for observer in self._observers:
            observer.errors(api, names)

    def connected(self) -> None:
        for observer in self._observers:
            observer.connected()

    def disconnected(self, client: str, reason: str | None) -> None:
        for observer in self._observers:
            observer.disconnected(client, reason)

    def connection_refused(self, client: str, reason: str) -> None:
        for observer in self._observers:
            observer.connection_refused(client, reason)

    def bug(self, where: str, error: BaseException) -> None:
        for observer in self._observers:
            observer.bug(where, error)

    def recovered(self, task: str, failures: int) -> None:
        for observer in self._observers:
            observer.recovered(task, failures)
