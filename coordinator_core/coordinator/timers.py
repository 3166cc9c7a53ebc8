"""Delayed operations (`DelayedJoin`, `DelayedSync`, `DelayedHeartbeat`, `CoordinatorTimer`): what happens when nothing else did.

Timers are data: a key, a deadline and what is due then. Nothing runs by itself; who owns the clock asks what is due.
"""

import heapq
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class TimerKind(Enum):
    """What is delayed."""

    JOIN = "join"
    SYNC = "sync"
    HEARTBEAT = "heartbeat"
    SWEEP = "sweep"


class TimerKey(NamedTuple):
    """Name of a timer; at most one of a name is set. `member_id` is "" where the timer is the group's."""

    kind: TimerKind
    group_id: str = ""
    member_id: str = ""


@dataclass(frozen=True, slots=True)
class JoinTimeout:
    """The join phase ends. Of an initial rebalance, `delay_ms` is how long it was delayed and `remaining_ms` for how long it may
    still be extended when new members came; both 0 otherwise."""

    group_id: str
    delay_ms: int = 0
    remaining_ms: int = 0


@dataclass(frozen=True, slots=True)
class SyncTimeout:
    """The time for SyncGroup of a generation is over."""

    group_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class HeartbeatTimeout:
    """A member was not heard of for its session timeout, or did not come back with the member id that it was given."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ExpirationTimeout:
    """Time to look for expired offsets."""


Due = JoinTimeout | SyncTimeout | HeartbeatTimeout | ExpirationTimeout


class Timers:
    """Timers by key. Deadlines in ms; a timer that was cancelled, or set again, never fires for its old deadline.

    Setting a timer to a later time, as each heartbeat does, costs a dictionary entry: the queue learns of it when the old
    deadline comes up.
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
        """When the timer fires, None if it is not set."""
        timer = self._timers.get(key)
        return None if timer is None else timer[0]

    def schedule(self, key: TimerKey, deadline_ms: int, due: Due) -> None:
        """Sets the timer, in place of what it was set to before."""
        self._timers[key] = (deadline_ms, due)
        queued = self._queued.get(key)
        if queued is None or deadline_ms < queued[0]:
            self._enqueue(key, deadline_ms)

    def cancel(self, key: TimerKey) -> bool:
        """Takes the timer back; False if it was not set."""
        return self._timers.pop(key, None) is not None

    def clear(self) -> None:
        """Takes all timers back."""
        self._timers.clear()
        self._queue.clear()
        self._queued.clear()

    def next_deadline(self) -> int | None:
        """A time before which nothing is due; None when no timer is set. Nothing may be due at it either, when timers moved."""
        return self._queue[0][0] if self._timers else None

    def pop_due(self, now_ms: int) -> Due | None:
        """Takes the next timer whose deadline has come and says what is due; None when there is none.

        One at a time, so that what one timer causes can cancel the next.
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
