"""What the service tells to whoever watches it. Everything here is called in the event loop, and must not wait."""

from collections.abc import Iterable

from coordinator_core.coordinator.facts import Fact


class Observer:
    """Hears everything and does nothing; logs and metrics are made of it. Times in seconds."""

    def facts(self, partition: int, facts: Iterable[Fact]) -> None:
        """What a shard has to tell."""

    def load_finished(self, partition: int, epoch: int, records: int, anomalies: int, seconds: float) -> None:
        """The partition answers from now on."""

    def unloaded(self, partition: int, epoch: int) -> None:
        """The partition is another's."""

    def failed(self, partition: int, reason: str) -> None:
        """The partition has ended, and is not there until the service is started again."""

    def queued(self, seconds: float) -> None:
        """For so long a request waited for its partition."""

    def appended(self, batches: int, seconds: float) -> None:
        """The log took so many batches with one write."""

    def append_refused(self, partition: int, batches: int, reason: str) -> None:
        """The log did not take the batches, and goes on."""

    def cleaning_failed(self, reason: str) -> None:
        """The log was not compacted, and goes on."""

    def flushed(self, seconds: float) -> None:
        """An fsync."""

    def answered(self, api: str, seconds: float) -> None:
        """A request, from its last byte to its answer's first."""

    def errors(self, names: Iterable[str]) -> None:
        """Errors in an answer, by Kafka's names."""

    def connected(self) -> None:
        """A connection was taken."""

    def disconnected(self, client: str, reason: str | None) -> None:
        """A connection ended; `reason` when the service ended it."""

    def connection_refused(self, client: str, reason: str) -> None:
        """Somebody was sent away."""

    def bug(self, where: str, error: BaseException) -> None:
        """An error that should not be; the service goes on."""

    def recovered(self, task: str, failures: int) -> None:
        """A background task succeeded, after so many failures in a row."""
