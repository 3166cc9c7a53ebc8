"""Events of a partition loop."""

from collections.abc import Callable
from typing import Any, NamedTuple

from coordinator_core.protocol.api import CoordinatorRequest, TransactionRequest
from coordinator_core.service.runtime.reply_handles import ReplyHandle


class RequestReceived(NamedTuple):
    """A request arrived; `at` is the performance counter at its arrival."""

    request: CoordinatorRequest | TransactionRequest
    reply_handle: ReplyHandle
    at: float


class Elected(NamedTuple):
    """This coordinator owns the partition from this leader epoch on; None for the next one."""

    epoch: int | None


class Loaded(NamedTuple):
    """A load ended; `error` is set if the log could not be read to its end, `may_pass` if a later load may succeed."""

    epoch: int
    records: int = 0
    anomalies: int = 0
    seconds: float = 0.0
    error: str | None = None
    may_pass: bool = False


class Resigned(NamedTuple):
    """Another coordinator owns the partition as of this leader epoch; None if the replica was deleted."""

    epoch: int | None


class TimerFired(NamedTuple):
    """The next deadline has passed."""


class ShardCalled(NamedTuple):
    """A call of the shard other than a request, such as the result of markers. `name` is shown if it fails."""

    name: str
    call: Callable[[int], Any]


class LogFailed(NamedTuple):
    """The log failed in a way that leaves its content unknown."""

    reason: str


class Stop(NamedTuple):
    """The loop ends; this is its last event."""


Event = RequestReceived | Elected | Loaded | Resigned | TimerFired | ShardCalled | LogFailed | Stop
