"""Coordinators of groups and of transactions as a partition loop uses them: a shard per log partition, and their traits."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from coordinator_core.coordinator_common.results import Answer, ReplyHandle, ShardStatus
from coordinator_core.log.columns import RecordColumns
from coordinator_core.protocol.api import Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.state.anomaly import Anomaly


class ShardResult(Protocol):
    """Everything that one call of a shard caused."""

    @property
    def answers(self) -> Sequence[Answer]:
        """Responses with the reply handles of their requests."""

    @property
    def writes(self) -> Sequence[Any]:
        """Writes for the log, in order; the shard that made them takes their results."""


ResultT = TypeVar("ResultT", bound=ShardResult)
_ResultT_co = TypeVar("_ResultT_co", bound=ShardResult, covariant=True)


class LogShard(Protocol[_ResultT_co]):
    """A state machine over one log partition; calls are serialized by its loop."""

    partition: int
    status: ShardStatus
    epoch: int

    def begin_load(self, epoch: int, now_ms: int) -> bool:
        """Start a load for a leader epoch; return False for a stale one."""

    def replay_columns(self, pieces: Iterable[RecordColumns]) -> tuple[Anomaly, ...]:
        """Apply the whole log; return the anomalies."""

    def finish_load(self, now_ms: int) -> _ResultT_co:
        """End the load."""

    def unload(self, epoch: int | None, now_ms: int) -> _ResultT_co:
        """Give up the partition."""

    def handle(self, request: Any, reply: ReplyHandle, now_ms: int) -> _ResultT_co:
        """Handle a request."""

    def error_response(self, request: Any, error: ErrorCode) -> Response:
        """Return the response to a request that fails as a whole."""

    def appended(self, write: Any, base_offset: int, now_ms: int) -> _ResultT_co:
        """Take the offset of a write."""

    def append_failed(self, write: Any, error: ErrorCode, now_ms: int) -> _ResultT_co:
        """Take the error of a write."""

    def timers_due(self, now_ms: int) -> _ResultT_co:
        """Run the timers that are due."""

    def next_deadline(self) -> int | None:
        """Return the time of the next timer."""


@dataclass(frozen=True, slots=True)
class CoordinatorTraits(Generic[ResultT]):
    """What one coordinator adds to the event loops of its log partitions.

    - `name` begins the names of its background tasks, `label` names a partition for the observer.
    - `take_effects` takes the part of a partition's result that is neither a response nor a write.
    - `batch_of` makes the batch of a write, `refused` is the error of an append that the log refuses.
    """

    name: str
    label: Callable[[int], int | str]
    take_effects: Callable[[int, ResultT], None]
    batch_of: Callable[[Any], AppendBatch]
    refused: ErrorCode
