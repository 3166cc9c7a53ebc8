"""Waiting in a demonstration: for as long as there is progress, however slow the machine is."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pipelines.errors import GrouplakeError

#: What is waited for has given up, or nothing will ever happen, when it made no progress for so long.
STALL_SECONDS = 60.0


class DemoError(GrouplakeError):
    """The demonstration did not go as it should."""


@dataclass(frozen=True)
class Sight:
    """One look at what is waited for: whether it is done, a number that grows with its progress, and how it stands in words."""

    is_done: bool
    progress: int
    described: str


async def wait_for(failure: str, look: Callable[[], Awaitable[Sight]], look_seconds: float, hint: str = "") -> None:
    """Looks every `look_seconds` until it is done.

    Raises DemoError, which begins with `failure` and ends with `hint`, when progress has not grown for STALL_SECONDS.
    """
    clock = asyncio.get_running_loop().time
    furthest, since = -1, clock()
    while not (sight := await look()).is_done:
        if sight.progress > furthest:
            furthest, since = sight.progress, clock()
        elif clock() - since > STALL_SECONDS:
            raise DemoError(f"{failure}: no progress for {STALL_SECONDS:g} s ({sight.described}){hint}")
        await asyncio.sleep(look_seconds)
