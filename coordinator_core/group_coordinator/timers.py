"""Delayed operations of groups (`DelayedJoin`, `DelayedSync`, `DelayedHeartbeat`, `CoordinatorTimer`): keys and timeouts."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from coordinator_core.coordinator_common.timers import Timers


class TimerKind(Enum):
    """Kind of a delayed operation."""

    JOIN = "join"
    SYNC = "sync"
    HEARTBEAT = "heartbeat"
    SWEEP = "sweep"


class TimerKey(NamedTuple):
    """Key of a timer; a key has at most one timer. `member_id` is "" for a timer of the group."""

    kind: TimerKind
    group_id: str = ""
    member_id: str = ""


@dataclass(frozen=True, slots=True)
class JoinTimeout:
    """The join phase ends. For an initial rebalance, `delay_ms` is the length of the delay, and `remaining_ms` is the time by
    which new members may still extend it; otherwise both are 0."""

    group_id: str
    delay_ms: int = 0
    remaining_ms: int = 0


@dataclass(frozen=True, slots=True)
class SyncTimeout:
    """The time for the SyncGroups of a generation has passed."""

    group_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class HeartbeatTimeout:
    """A member's session has timed out, or a pending member id was not used in time."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ExpirationTimeout:
    """The next sweep of expired offsets is due."""


GroupTimeout = JoinTimeout | SyncTimeout | HeartbeatTimeout | ExpirationTimeout

#: Timers of the groups of one log partition.
GroupTimers = Timers[TimerKey, GroupTimeout]
