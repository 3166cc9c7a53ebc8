"""What can happen to a log partition: the events of its loop."""

from typing import NamedTuple

from coordinator_core.coordinator.request_checks import Request
from coordinator_core.coordinator.result import Response
from coordinator_core.service.reply_handles import ReplyHandle


class RequestReceived(NamedTuple):
    """A request came, at this time of the performance counter."""

    request: Request
    reply_handle: ReplyHandle[Response]
    at: float


class Elected(NamedTuple):
    """The partition is ours from this leader epoch on."""

    epoch: int


class Loaded(NamedTuple):
    """The log was read to its end; `error` if it could not be."""

    epoch: int
    records: int = 0
    anomalies: int = 0
    seconds: float = 0.0
    error: str | None = None


class Resigned(NamedTuple):
    """The partition is another's as of this leader epoch; None: the replica is gone."""

    epoch: int | None


class TimerFired(NamedTuple):
    """The next deadline has come."""


class LogFailed(NamedTuple):
    """What the log has is not known any more."""

    reason: str


class Stop(NamedTuple):
    """Nothing comes after this."""


Event = RequestReceived | Elected | Loaded | Resigned | TimerFired | LogFailed | Stop
