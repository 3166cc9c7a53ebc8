"""The result of a call: responses, writes for the log, markers for partitions, and events."""

from collections.abc import Callable
from dataclasses import dataclass, field

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.codec.transactions import TransactionRecord, encode_transaction
from coordinator_core.coordinator_common.results import Answer, ReplyHandle
from coordinator_core.protocol.api import Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import TxnMarkerRequest
from coordinator_core.transaction_coordinator.context import TransactionContext
from coordinator_core.transaction_coordinator.events import TransactionEvent, TransactionWriteRefused


@dataclass(frozen=True, slots=True, eq=False)
class TransactionWrite:
    """Records for the log partition, as one batch without producer, in this order and after every earlier write."""

    number: int
    records: tuple[TransactionRecord, ...]
    encoded: tuple[tuple[bytes, bytes | None], ...]
    then: "TransactionContinuation"


@dataclass(frozen=True, slots=True)
class MarkerBatch:
    """The marker of a transaction, for these partitions. The owner writes it to each of them, and reports each one's error."""

    transactional_id: str
    marker: TxnMarkerRequest
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class TransactionResult:
    """Everything that one call caused, each in order."""

    answers: tuple[Answer, ...] = ()
    writes: tuple[TransactionWrite, ...] = ()
    markers: tuple[MarkerBatch, ...] = ()
    events: tuple[TransactionEvent, ...] = ()


@dataclass(slots=True)
class TransactionResultBuilder:
    """Collects the result of one call, at one time. `next_write` numbers the writes.

    `unwritable` has the continuations of writes that cannot be encoded.
    """

    context: TransactionContext
    now_ms: int
    next_write: Callable[[], int]
    answers: list[Answer] = field(default_factory=list)
    writes: list[TransactionWrite] = field(default_factory=list)
    markers: list[MarkerBatch] = field(default_factory=list)
    unwritable: list["TransactionContinuation"] = field(default_factory=list)
    events: list[TransactionEvent] = field(default_factory=list)

    def answer(self, reply: ReplyHandle, response: Response) -> None:
        """Add a response that depends on no further write."""
        self.answers.append(Answer(reply, response))

    def emit(self, event: TransactionEvent) -> None:
        """Add an event for observers."""
        self.events.append(event)

    def write(self, records: tuple[TransactionRecord, ...], then: "TransactionContinuation") -> None:
        """Add a write; `then` runs when the log has accepted or refused it."""
        try:
            encoded = tuple(encode_transaction(record) for record in records)
        except ValueError:
            self.unwritable.append(then)
            self.emit(TransactionWriteRefused(records[0].key.transactional_id))
            return
        self.writes.append(TransactionWrite(self.next_write(), records, encoded, then))

    def build(self) -> TransactionResult:
        """Return the collected result."""
        return TransactionResult(tuple(self.answers), tuple(self.writes), tuple(self.markers), tuple(self.events))


#: Runs when the log has the records (NONE), or with its error.
TransactionContinuation = Callable[[ErrorCode, TransactionResultBuilder], None]
