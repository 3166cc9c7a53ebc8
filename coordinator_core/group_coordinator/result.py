"""The result of one call of a coordinator: responses to send now, and records that must be appended to the log first."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.codec import Record, encode
from coordinator_core.coordinator_common.results import Answer, ReplyHandle
from coordinator_core.group_coordinator.context import CoordinatorContext
from coordinator_core.group_coordinator.group_events import GroupEvent, WriteRefused
from coordinator_core.log.entries import ControlType
from coordinator_core.protocol.api import Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """Records for the log partition, as one batch, in this order and after every earlier write (Kafka's `CoordinatorResult`).

    `encoded` has their keys and values. The batch is transactional if `producer` is given; with `control_type` it is the marker
    that ends the producer's transaction, without records. `then` is called by the coordinator with the result of the append.
    """

    number: int
    records: tuple[Record, ...]
    encoded: tuple[tuple[bytes, bytes | None], ...]
    producer: ProducerEpoch | None
    control_type: ControlType | None
    coordinator_epoch: int
    transaction_version: int
    then: "Continuation"


class CoordinatorResult(NamedTuple):
    """Everything that one call caused, each in order. `group_events` are for observers."""

    answers: tuple[Answer, ...] = ()
    writes: tuple[Write, ...] = ()
    group_events: tuple[GroupEvent, ...] = ()


@dataclass(slots=True)
class ResultBuilder:
    """Collects the result of one call, at one time. `next_write` numbers the writes.

    `unwritable` has the continuations of writes that cannot be encoded: a string is too long, or a number out of range. `waiting`
    has the continuations that run once every earlier write is accepted or refused.
    """

    context: CoordinatorContext
    now_ms: int
    next_write: Callable[[], int]
    answers: list[Answer] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    unwritable: list["Continuation"] = field(default_factory=list)
    waiting: list["Continuation"] = field(default_factory=list)
    group_events: list[GroupEvent] = field(default_factory=list)

    def answer(self, reply: ReplyHandle, response: Response) -> None:
        """Adds a response that depends on no further write."""
        self.answers.append(Answer(reply, response))

    def emit(self, event: GroupEvent) -> None:
        """Adds an event for observers."""
        self.group_events.append(event)

    def write(
        self,
        records: tuple[Record, ...],
        then: "Continuation",
        *,
        producer: ProducerEpoch | None = None,
        control_type: ControlType | None = None,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        """Adds a write; `then` runs when the log has accepted or refused it."""
        try:
            encoded = tuple(encode(record) for record in records)
        except ValueError:
            self.unwritable.append(then)
            self.emit(WriteRefused(len(records)))
            return
        number = self.next_write()
        self.writes.append(Write(number, records, encoded, producer, control_type, coordinator_epoch, transaction_version, then))

    def after_writes(self, then: "Continuation") -> None:
        """Runs `then` with the result of the last write, once all writes so far are done; in this call if there are none."""
        self.waiting.append(then)

    def build(self) -> CoordinatorResult:
        """Returns the collected result."""
        return CoordinatorResult(tuple(self.answers), tuple(self.writes), tuple(self.group_events))


#: Runs when the log has the records (NONE), or with its error.
Continuation = Callable[[ErrorCode, ResultBuilder], None]
