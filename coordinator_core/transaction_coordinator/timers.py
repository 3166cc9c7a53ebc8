"""Delayed operations of a log partition of transactions."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from coordinator_core.coordinator_common.timers import Timers


class TransactionTimerKind(Enum):
    """Kind of a delayed operation."""

    ABORT_TIMED_OUT = "abort timed out transactions"
    EXPIRE_IDS = "expire transactional ids"
    RETRY_MARKERS = "retry markers"
    RETRY_COMPLETION = "retry completion"


class TransactionTimerKey(NamedTuple):
    """Key of a timer; `transactional_id` is "" for a timer of the log partition."""

    kind: TransactionTimerKind
    transactional_id: str = ""


@dataclass(frozen=True, slots=True)
class AbortScan:
    """The scan that aborts transactions above their timeout."""


@dataclass(frozen=True, slots=True)
class ExpirationSweep:
    """The scan that removes transactional ids that were not used for long."""


@dataclass(frozen=True, slots=True)
class MarkerRetry:
    """The next attempt for markers that partitions have refused."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class CompletionRetry:
    """The next attempt to append the record of a completed transaction."""

    transactional_id: str


TransactionTimeout = AbortScan | ExpirationSweep | MarkerRetry | CompletionRetry
#: Timers of the transactions of one log partition.
TransactionTimers = Timers[TransactionTimerKey, TransactionTimeout]
