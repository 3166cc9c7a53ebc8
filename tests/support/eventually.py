"""Wait for an effect of another process, thread or task: the one poll loop of the tests.

    eventually("the group is stable", lambda: state("billing"), equal_to("Stable"), unless=job.failure)

A probe that takes CPU time is called less often, so that a wait leaves most of a core to what it waits for.

A wait fails when the observed value has not changed for `patience_seconds`, so that a slow machine that makes progress gets more
time than one that makes none, and after `LIMIT_SECONDS` in any case. Both limits are in `patience.py`.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from patience import LIMIT_SECONDS, PATIENCE_SECONDS

T = TypeVar("T")

_SHOWN = 2000
#: A pause lasts as many times the CPU time of the probe before it, and at most this long because of it.
_PAUSE_PER_WORK, _LONGEST_SECONDS = 10, 1.0


class NotReached(AssertionError):
    """The wait failed. The message has the last value, how long it had not changed, and how long the wait took."""


def equal_to(wanted: object) -> Callable[[object], bool]:
    """For `until`: the value equals `wanted`."""
    return lambda value: value == wanted


def at_least(wanted: float) -> Callable[[float], bool]:
    """For `until`: the value is `wanted` or more."""
    return lambda value: value >= wanted


def eventually(
    what: str,
    probe: Callable[[], T],
    until: Callable[[T], object] = bool,
    *,
    unless: Callable[[], str | None] = lambda: None,
    patience_seconds: float = PATIENCE_SECONDS,
    pause_seconds: float = 0.02,
) -> T:
    """Call `probe` until its value satisfies `until`, and return that value.

    Raises NotReached after the limits in the module docstring, and as soon as `unless` returns why the wait cannot succeed.
    """
    wait = _Wait(what, patience_seconds)
    begun = _cpu_seconds()
    while not until(value := probe()):
        wait.goes_on(value, unless())
        time.sleep(max(pause_seconds, min(_PAUSE_PER_WORK * (_cpu_seconds() - begun), _LONGEST_SECONDS)))
        begun = _cpu_seconds()
    return value


async def eventually_async(
    what: str,
    probe: Callable[[], T],
    until: Callable[[T], object] = bool,
    *,
    unless: Callable[[], str | None] = lambda: None,
    patience_seconds: float = PATIENCE_SECONDS,
    pause_seconds: float = 0.02,
) -> T:
    """`eventually` on an event loop, which runs other tasks between two probes."""

    async def look() -> T:
        return probe()

    return await eventually_awaited(
        what, look, until, unless=unless, patience_seconds=patience_seconds, pause_seconds=pause_seconds
    )


async def eventually_awaited(
    what: str,
    probe: Callable[[], Awaitable[T]],
    until: Callable[[T], object] = bool,
    *,
    unless: Callable[[], str | None] = lambda: None,
    patience_seconds: float = PATIENCE_SECONDS,
    pause_seconds: float = 0.02,
) -> T:
    """`eventually_async` for a `probe` that is a coroutine function."""
    wait = _Wait(what, patience_seconds)
    while not until(value := await probe()):
        wait.goes_on(value, unless())
        await asyncio.sleep(pause_seconds)
    return value


def _cpu_seconds() -> float:
    """CPU time of this process and of the processes that it has waited for."""
    return sum(os.times()[:4])


class _Wait:
    """The duration of a wait, and the last value that it saw."""

    def __init__(self, what: str, patience_seconds: float) -> None:
        self._what = what
        self._patience = patience_seconds
        self._limit = max(LIMIT_SECONDS, patience_seconds)
        self._begun = self._changed = time.monotonic()
        self._last = ""
        self._looks = 0

    def goes_on(self, value: object, given_up: str | None) -> None:
        """Note that a probe returned `value`, which does not satisfy the wait; raise NotReached when the time is over."""
        now = time.monotonic()
        self._looks += 1
        # as text: the value may be the same list object each time, with more elements
        seen = repr(value)
        if seen != self._last:
            self._last, self._changed = seen, now
        if given_up:
            raise NotReached(f"{self._message(now)}; given up: {given_up}")
        if now - self._changed >= self._patience or now - self._begun >= self._limit:
            raise NotReached(self._message(now))

    def _message(self, now: float) -> str:
        last = self._last
        shown = last if len(last) <= _SHOWN else f"{last[:_SHOWN]}… ({len(last)} characters)"
        return (
            f"not within {now - self._begun:.1f} s: {self._what}; last value, in {self._looks} looks, unchanged for "
            f"{now - self._changed:.1f} s: {shown}"
        )
