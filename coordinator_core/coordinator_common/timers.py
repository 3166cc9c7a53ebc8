"""Delayed operations as data: a key, a deadline and a timeout. The owner of the clock requests the timeouts that are due."""

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
DueT = TypeVar("DueT")


class Timers(Generic[KeyT, DueT]):
    """Timers by key. Deadlines are in ms; a timer that was cancelled or set again never fires at its old deadline.

    Moving a timer to a later deadline, as each heartbeat does, updates only a dictionary entry: the queue is corrected when the
    old deadline is reached.
    """

    def __init__(self) -> None:
        self._timers: dict[KeyT, tuple[int, DueT]] = {}
        self._queue: list[tuple[int, int, KeyT]] = []
        self._queued: dict[KeyT, tuple[int, int]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: KeyT) -> bool:
        return key in self._timers

    def deadline(self, key: KeyT) -> int | None:
        """Returns the deadline of the timer; None if it is not set."""
        timer = self._timers.get(key)
        return None if timer is None else timer[0]

    def schedule(self, key: KeyT, deadline_ms: int, due: DueT) -> None:
        """Sets the timer, replacing an earlier deadline."""
        self._timers[key] = (deadline_ms, due)
        queued = self._queued.get(key)
        if queued is None or deadline_ms < queued[0]:
            self._enqueue(key, deadline_ms)

    def cancel(self, key: KeyT) -> bool:
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

    def pop_due(self, now_ms: int) -> DueT | None:
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

    def _enqueue(self, key: KeyT, deadline_ms: int) -> None:
        self._count += 1
        self._queued[key] = (deadline_ms, self._count)
        heapq.heappush(self._queue, (deadline_ms, self._count, key))
