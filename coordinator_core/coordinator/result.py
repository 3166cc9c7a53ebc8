"""What one call of a coordinator causes: answers that may leave now, and records that the log has to have first."""

from collections.abc import Callable
from dataclasses import dataclass, field

from coordinator_core.codec import Record, encode
from coordinator_core.coordinator.context import CoordinatorContext
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.group_events import GroupEvent, WriteRefused
from coordinator_core.coordinator.messages.groups import (
    ConsumerGroupDescribeResponse,
    DeleteGroupResponse,
    DescribeGroupResponse,
    ListGroupsResponse,
)
from coordinator_core.coordinator.messages.membership import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from coordinator_core.coordinator.messages.offsets import (
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    ProducerEpoch,
    TxnMarkerResponse,
)
from coordinator_core.coordinator.reply_handle import ReplyHandle
from coordinator_core.log.entries import ControlType

Response = (
    JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | OffsetDeleteResponse
    | TxnMarkerResponse
    | DescribeGroupResponse
    | ConsumerGroupDescribeResponse
    | ListGroupsResponse
    | DeleteGroupResponse
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response and the request that it is for."""

    reply: ReplyHandle
    response: Response


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """Records for the log partition, one batch, in this order and behind every write before (`CoordinatorResult`).

    `encoded` has their keys and values. Transactional when `producer` is given; `control_type` makes it the marker that ends the
    transaction of the producer, without records. `then` is the coordinator's own: it goes on there once the log has said what
    became of the batch.
    """

    number: int
    records: tuple[Record, ...]
    encoded: tuple[tuple[bytes, bytes | None], ...]
    producer: ProducerEpoch | None
    control_type: ControlType | None
    coordinator_epoch: int
    then: "Continuation"


@dataclass(frozen=True, slots=True)
class CoordinatorResult:
    """Everything that one call caused. Order counts in all three. `group_events` are for observers."""

    answers: tuple[Answer, ...] = ()
    writes: tuple[Write, ...] = ()
    group_events: tuple[GroupEvent, ...] = ()


@dataclass(slots=True)
class ResultBuilder:
    """One call of a coordinator, at one time, while it collects what it causes. `next_write` numbers the writes.

    `unwritable` are continuations of writes that no log could take: a string that is too long, a number out of range. `waiting`
    are those that go on when the log has answered every write so far.
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
        """This may leave at once."""
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
    ) -> None:
        """The log has to have this before `then` goes on."""
        try:
            encoded = tuple(encode(record) for record in records)
        except ValueError:
            self.unwritable.append(then)
            self.emit(WriteRefused(len(records)))
            return
        self.writes.append(Write(self.next_write(), records, encoded, producer, control_type, coordinator_epoch, then))

    def after_writes(self, then: "Continuation") -> None:
        """Goes on when the log has answered all writes so far, with what it said of the last; at once if there are none."""
        self.waiting.append(then)

    def outcome(self) -> CoordinatorResult:
        """What was collected."""
        return CoordinatorResult(tuple(self.answers), tuple(self.writes), tuple(self.group_events))


#: Goes on when the log has the records (NONE), or with its error.
Continuation = Callable[[ErrorCode, ResultBuilder], None]
