"""Waiting with a limit on the time without progress instead of a limit on the total time."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pipelines.runtime.errors import GrouplakeError

#: A wait fails after this time without progress.
STALL_SECONDS = 60.0


class DemoError(GrouplakeError):
    """A step of the demo did not have the expected result."""


@dataclass(frozen=True)
class WaitProgress:
    """One observation during a wait: whether it is over, a number that grows with progress, and a description."""

    is_done: bool
    progress: int
    described: str


async def wait_for(failure: str, observe: Callable[[], Awaitable[WaitProgress]], every_seconds: float, hint: str = "") -> None:
    """Call `observe` every `every_seconds` until it is done.

    Raises DemoError, beginning with `failure` and ending with `hint`, when progress has not grown for STALL_SECONDS.
    """
    clock = asyncio.get_running_loop().time
    furthest, since = -1, clock()
    while not (seen := await observe()).is_done:
        if seen.progress > furthest:
            furthest, since = seen.progress, clock()
        elif clock() - since > STALL_SECONDS:
            raise DemoError(f"{failure}: no progress for {STALL_SECONDS:g} s ({seen.described}){hint}")
        await asyncio.sleep(every_seconds)
