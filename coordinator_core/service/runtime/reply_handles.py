"""Reply handles: a shard gets one with each request, and the service passes the response to it."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from coordinator_core.protocol.api import Response


class ReplyHandle(Protocol):
    """The receiver of one response. Compared by identity."""

    def answer(self, response: Response) -> None:
        """Receive the response; called once, in the event loop."""

    def __hash__(self) -> int: ...


class FutureReply:
    """A reply handle whose response can be awaited as `future`."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

    def answer(self, response: Response) -> None:
        """Set the result of the future, unless it was cancelled."""
        if not self.future.done():
            self.future.set_result(response)


class PartReply:
    """The reply handle of one part of a request that is answered by several shards."""

    __slots__ = ("_gathered", "_position")

    def __init__(self, gathered: "GatheredReplies", position: int) -> None:
        self._gathered = gathered
        self._position = position

    def answer(self, response: Response) -> None:
        """Store the response of this part."""
        self._gathered.put(self._position, response)


class GatheredReplies:
    """The responses of the `count` parts of a request. The last one calls `done` with all, in the order of the parts."""

    __slots__ = ("_done", "_missing", "_responses")

    def __init__(self, count: int, done: Callable[[list[Response]], None]) -> None:
        self._responses: dict[int, Response] = {}
        self._missing = count
        self._done = done

    def handles(self) -> tuple[PartReply, ...]:
        """Return the reply handles, one for each part."""
        return tuple(PartReply(self, position) for position in range(self._missing))

    def put(self, position: int, response: Response) -> None:
        """Store the response of one part."""
        self._responses[position] = response
        self._missing -= 1
        if not self._missing:
            self._done([self._responses[position] for position in sorted(self._responses)])
