"""Clients of `modelled_brokers`: confluent-kafka's transactional producer and `KafkaSource`, whose requests a test delivers.

Each request stops its call (`stepped_calls`), and the test's `Fate` says what becomes of it. Like librdkafka, the producer
repeats a request without an answer and one that is answered CONCURRENT_TRANSACTIONS, adds the partition before it produces,
keeps the sequence numbers of a repeated batch, and sends EndTxn once all batches are answered. Its errors are those of
librdkafka, which `tests/broker/test_fences_of_brokers.py` compares.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from modelled_brokers import NONE, ModelledCoordinator, ModelledPartition, Queued
from stepped_calls import wait

from coordinator_core.log.columns import RecordColumns, columns_of
from coordinator_core.log.committed_records import committed_records
from coordinator_core.log.entries import ControlType
from coordinator_core.log.errors import LogUnreachable
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch

T = TypeVar("T")
PRODUCE = "Produce"
#: Records of a piece of a load.
_PIECE = 3
_FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


class Fate(Enum):
    """What becomes of a request, and then of the client that waits for its answer."""

    ANSWERED = auto()
    #: The client repeats it.
    REQUEST_LOST = auto()
    ANSWER_LOST = auto()
    #: The brokers get it later, when `Network.deliver` is called.
    DELAYED = auto()
    #: A batch is with the leader, and not yet with its followers.
    NOT_REPLICATED = auto()
    #: The client gives up.
    TIMED_OUT = auto()
    ANSWER_TIMED_OUT = auto()
    DELAYED_AND_TIMED_OUT = auto()


_ARRIVES = (Fate.ANSWERED, Fate.ANSWER_LOST, Fate.ANSWER_TIMED_OUT, Fate.NOT_REPLICATED)
_IS_LATE = (Fate.DELAYED, Fate.DELAYED_AND_TIMED_OUT)
_GIVES_UP = (Fate.TIMED_OUT, Fate.ANSWER_TIMED_OUT, Fate.DELAYED_AND_TIMED_OUT)


class TimedOut(Exception):
    """The client has given up."""


class Network:
    """The way to the brokers. `late` are requests that are still under way; their senders have repeated them or given up."""

    def __init__(self, coordinator: ModelledCoordinator) -> None:
        self.coordinator = coordinator
        self.late: list[tuple[str, Callable[[], object]]] = []

    @property
    def partition(self) -> ModelledPartition:
        return self.coordinator.partition

    def ask(self, name: str, request: Callable[[], T]) -> T:
        """Send until there is an answer. Raises TimedOut."""
        while True:
            fate = wait(name)
            if fate in _IS_LATE:
                self.late.append((name, request))
            answer = self._arrive(name, request, fate is not Fate.NOT_REPLICATED) if fate in _ARRIVES else None
            if fate in _GIVES_UP:
                raise TimedOut
            if fate is Fate.ANSWERED and answer is not None:
                return answer

    def deliver(self, number: int) -> None:
        """Let a late request arrive; its answer reaches no client."""
        self._arrive(*self.late.pop(number))

    def _arrive(self, name: str, request: Callable[[], T], is_replicated: bool = True) -> T:
        answer = request()
        if name == PRODUCE and is_replicated:
            self.partition.replicate()
        return answer


class ModelledMessage:
    """What a delivery report has of a message."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def offset(self) -> int:
        return self._offset


class ModelledProducer:
    """A producer of librdkafka, with at most `batch_records` records in a batch."""

    def __init__(self, network: Network, batch_records: int) -> None:
        self.granted: ProducerEpoch | None = None
        self._network = network
        self._batch_records = batch_records
        self._queue: list[tuple[Queued, Callable[[None, Any], None] | None]] = []
        self._sequence = 0
        self._has_partition = False
        self._error: KafkaError | None = None

    def init_transactions(self, timeout: float) -> None:  # noqa: ARG002 - of `TransactionalProducer`
        def init() -> tuple[ErrorCode, ProducerEpoch | None]:
            return self._network.coordinator.init_producer_id()

        while self.granted is None:
            _, self.granted = self._ask("InitProducerId", init)

    def begin_transaction(self) -> None:
        if self._error is not None:
            raise KafkaException(self._error)
        self._has_partition = False

    def produce(
        self,
        topic: str,  # noqa: ARG002
        value: bytes | None,
        key: bytes | None,
        partition: int,  # noqa: ARG002
        *,
        on_delivery: Callable[[None, Any], None] | None = None,
        timestamp: int = 0,
    ) -> None:
        self._queue.append((Queued(key, value, timestamp), on_delivery))

    def poll(self, timeout: float) -> int:  # noqa: ARG002
        return 0

    def commit_transaction(self, timeout: float) -> None:  # noqa: ARG002
        self.send()
        producer = self._producer()
        self._agreed("EndTxn", lambda: self._network.coordinator.end(producer, ControlType.COMMIT))

    def send(self) -> None:
        """Send what is queued; librdkafka does so from `produce` on, in a thread."""
        producer = self._producer()
        if not self._has_partition:
            self._agreed("AddPartitionsToTxn", lambda: self._network.coordinator.add_partition(producer))
            self._has_partition = True
        while self._queue:
            self._send(producer, self._queue[: self._batch_records])
            del self._queue[: self._batch_records]

    def purge(self) -> None:
        self._queue.clear()

    def _send(self, producer: ProducerEpoch, batch: Sequence[tuple[Queued, Callable[[None, Any], None] | None]]) -> None:
        sequence, records = self._sequence, [queued for queued, _ in batch]
        produce = lambda: self._network.coordinator.produce(producer, sequence, records)  # noqa: E731
        error, base = self._ask(PRODUCE, produce)
        if error is not NONE:
            self._fail(error)
        self._sequence += len(records)
        for offset, (_, on_delivery) in enumerate(batch, base):
            if on_delivery is not None:
                on_delivery(None, ModelledMessage(offset))

    def _agreed(self, name: str, request: Callable[[], ErrorCode]) -> None:
        """Repeat the request until the transaction before it is complete."""
        error = ErrorCode.CONCURRENT_TRANSACTIONS
        while error is ErrorCode.CONCURRENT_TRANSACTIONS:
            error = self._ask(name, request)
        if error is not NONE:
            self._fail(error)

    def _ask(self, name: str, request: Callable[[], T]) -> T:
        try:
            return self._network.ask(name, request)
        except TimedOut:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{name} timed out", retriable=True)) from None

    def _fail(self, error: ErrorCode) -> None:
        code = KafkaError._FENCED if error in _FENCED else int(error)
        self._error = KafkaError(code, error.name, fatal=error in _FENCED, txn_requires_abort=error not in _FENCED)
        raise KafkaException(self._error)

    def _producer(self) -> ProducerEpoch:
        if self._error is not None:
            raise KafkaException(self._error)
        assert self.granted is not None
        return self.granted


class ModelledReader:
    """`KafkaSource` with an isolation level."""

    def __init__(self, network: Network, isolation_level: str) -> None:
        self._network = network
        self._is_committed = isolation_level == "read_committed"

    def __enter__(self) -> "ModelledReader":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        return None

    def earliest_offsets(self) -> dict[int, int]:
        return {0: 0}

    def end_offsets(self) -> dict[int, int]:
        return {0: self._ask("ListOffsets", lambda: self._end)}

    def read_columns(self, partition: int, start: int, end: int) -> Iterator[RecordColumns]:  # noqa: ARG002
        while start < end:
            columns = self._ask("Fetch", partial(self._fetch, start, end))
            yield columns
            start = columns.next_offset

    @property
    def _end(self) -> int:
        partition = self._network.partition
        return partition.last_stable_offset if self._is_committed else partition.high_watermark

    def _fetch(self, start: int, end: int) -> RecordColumns:
        partition = self._network.partition
        records = [record for record in partition.records if start <= record.offset < min(end, self._end)][:_PIECE]
        behind = records[-1].offset + 1 if len(records) == _PIECE else end
        columns = columns_of(tuple(records), next_offset=behind)
        if not self._is_committed:
            return columns
        here = [each for each in partition.aborted if each.first_offset < behind and each.last_offset >= start]
        return committed_records(columns, ((each.producer_id, each.first_offset) for each in here))

    def _ask(self, name: str, request: Callable[[], T]) -> T:
        try:
            return self._network.ask(name, request)
        except TimedOut:
            raise LogUnreachable(f"{name} timed out") from None
