"""Wait for what another process, thread or task does: the one poll loop of the tests.

    eventually("the group is stable", lambda: state("billing"), equal_to("Stable"), unless=job.failure)

A wait fails when the value that it looks at has not changed for `patience_seconds`, so that a slow machine that gets on is
given more time than one that stands still, and after `LIMIT_SECONDS` in any case.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

#: Below the limit of a whole test (`timeout` in pyproject.toml), so that the message of the wait is the one that is seen.
LIMIT_SECONDS = 240.0
_SHOWN = 2000


class NotReached(AssertionError):
    """What was awaited did not happen. The message has the last value, for how long it was that, and how long the wait was."""


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
    patience_seconds: float = 30,
    pause_seconds: float = 0.02,
) -> T:
    """Call `probe` until its value satisfies `until`, and return that value.

    Raises NotReached as the module says, and at once when `unless` returns why it will never happen.
    """
    wait = _Wait(what, patience_seconds)
    while not until(value := probe()):
        wait.goes_on(value, unless())
        time.sleep(pause_seconds)
    return value


async def eventually_async(
    what: str,
    probe: Callable[[], T],
    until: Callable[[T], object] = bool,
    *,
    unless: Callable[[], str | None] = lambda: None,
    patience_seconds: float = 30,
    pause_seconds: float = 0.02,
) -> T:
    """`eventually` on an event loop, which goes on between two looks."""

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
    patience_seconds: float = 30,
    pause_seconds: float = 0.02,
) -> T:
    """The same for a `probe` that has to be awaited itself."""
    wait = _Wait(what, patience_seconds)
    while not until(value := await probe()):
        wait.goes_on(value, unless())
        await asyncio.sleep(pause_seconds)
    return value


class _Wait:
    """The time that a wait has taken, and the value that it saw last."""

    def __init__(self, what: str, patience_seconds: float) -> None:
        self._what = what
        self._patience = patience_seconds
        self._limit = max(LIMIT_SECONDS, patience_seconds)
        self._begun = self._changed = time.monotonic()
        self._last = ""
        self._looks = 0

    def goes_on(self, value: object, given_up: str | None) -> None:
        """A look found `value`, which is not what was awaited."""
        now = time.monotonic()
        self._looks += 1
        # as text: a value may be the same list each time, with more in it
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
