"""The clients of the brokers, as the owner of a partition uses them: all that it knows of the cluster.

confluent-kafka's `Producer` and `KafkaSource` are these clients; tests have others, over a cluster in memory.
"""

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Protocol

from confluent_kafka import KafkaError, Message

from coordinator_core.log.columns import RecordColumns


class TransactionalProducer(Protocol):
    """A producer with a transactional id, which retries requests on its own. Methods raise KafkaException; times in seconds."""

    def init_transactions(self, timeout: float) -> None:
        """Get an epoch of the transactional id (InitProducerId), after its earlier transactions have been ended."""

    def begin_transaction(self) -> None:
        """Begin a transaction; sends nothing."""

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        *,
        on_delivery: Callable[[KafkaError | None, Message], None] | None = ...,
        timestamp: int = ...,
    ) -> None:
        """Queue a record; `on_delivery` is called in a later method. Raises BufferError for a full queue."""

    def poll(self, timeout: float) -> int:
        """Wait for an event of a queued record."""

    def commit_transaction(self, timeout: float) -> None:
        """Send what is queued, and end the transaction. After a retriable error a further call continues."""

    def purge(self) -> None:
        """Forget what is queued and what is on the way."""


class TopicReader(Protocol):
    """The topic with an isolation level. Methods raise LogError."""

    def __enter__(self) -> "TopicReader": ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None: ...

    def earliest_offsets(self) -> dict[int, int]:
        """First offset of each partition."""

    def end_offsets(self) -> dict[int, int]:
        """High watermark of each partition; the last stable offset with `read_committed`."""

    def read_columns(self, partition: int, start: int, end: int) -> Iterator[RecordColumns]:
        """Yield the records from `start` up to, not including, `end`; only committed ones with `read_committed`."""
