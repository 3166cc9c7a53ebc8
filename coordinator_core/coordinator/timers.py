"""Delayed operations (`DelayedJoin`, `DelayedSync`, `DelayedHeartbeat`, `CoordinatorTimer`).

Timers are data: a key, a deadline and a timeout value. The owner of the clock requests the timeouts that are due.
"""

import heapq
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


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


Due = JoinTimeout | SyncTimeout | HeartbeatTimeout | ExpirationTimeout


class Timers:
    """Timers by key. Deadlines are in ms; a timer that was cancelled or set again never fires at its old deadline.

    Moving a timer to a later deadline, as each heartbeat does, updates only a dictionary entry: the queue is corrected when the
    old deadline is reached.
    """

    def __init__(self) -> None:
        self._timers: dict[TimerKey, tuple[int, Due]] = {}
        self._queue: list[tuple[int, int, TimerKey]] = []
        self._queued: dict[TimerKey, tuple[int, int]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._timers

    def deadline(self, key: TimerKey) -> int | None:
        """Returns the deadline of the timer; None if it is not set."""
        timer = self._timers.get(key)
        return None if timer is None else timer[0]

    def schedule(self, key: TimerKey, deadline_ms: int, due: Due) -> None:
        """Sets the timer, replacing an earlier deadline."""
        self._timers[key] = (deadline_ms, due)
        queued = self._queued.get(key)
        if queued is None or deadline_ms < queued[0]:
            self._enqueue(key, deadline_ms)

    def cancel(self, key: TimerKey) -> bool:
        """Cancels the timer; returns False if it was not set."""
        return self._timers.pop(key, None) is not None

    def clear(self) -> None:
        """Cancels all timers."""
        self._timers.clear()
        self._queue.clear()
        self._queued.clear()

    def next_deadline(self) -> int | None:
        """Returns a time before which no timer is due; None if no timer is set. Moved timers may be due later than this time."""
        return self._queue[0][0] if self._timers else None

    def pop_due(self, now_ms: int) -> Due | None:
        """Removes and returns the next timeout whose deadline has passed; None if there is none.

        One at a time, since handling one timeout can cancel the next.
        """
        while self._queue and self._queue[0][0] <= now_ms:
            queued_for, number, key = heapq.heappop(self._queue)
            if self._queued.get(key) != (queued_for, number):
                continue
            del self._queued[key]
            timer = self._timers.get(key)
            if timer is None:
                continue
            if timer[0] > queued_for:
                self._enqueue(key, timer[0])
                continue
            del self._timers[key]
            return timer[1]
        return None

    def _enqueue(self, key: TimerKey, deadline_ms: int) -> None:
        self._count += 1
        self._queued[key] = (deadline_ms, self._count)
        heapq.heappush(self._queue, (deadline_ms, self._count, key))
