"""Who asked: the service hands a reply_handle to a shard with a request, and the answer to the reply_handle."""

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from coordinator_core.coordinator.result import Response

Taken = TypeVar("Taken", contravariant=True)
PartAnswer = TypeVar("PartAnswer")


class ReplyHandle(Protocol[Taken]):
    """The asker's end of one request. Compared by identity."""

    def answer(self, response: Taken) -> None:
        """Called once, in the event loop."""

    def __hash__(self) -> int: ...


class FutureReply:
    """For who awaits the answer."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

    def answer(self, response: Response) -> None:
        """Nobody may be waiting any more."""
        if not self.future.done():
            self.future.set_result(response)


class PartReply(Generic[PartAnswer]):
    """One part of a request that goes to several shards; the last answer calls `done` with all, in the order of the parts."""

    __slots__ = ("_gathered", "_place")

    def __init__(self, gathered: "GatheredReplies[PartAnswer]", place: int) -> None:
        self._gathered = gathered
        self._place = place

    def answer(self, response: PartAnswer) -> None:
        """Keeps it until all are there."""
        self._gathered.put(self._place, response)


class GatheredReplies(Generic[PartAnswer]):
    """`count` answers that belong together."""

    __slots__ = ("_done", "_missing", "_responses")

    def __init__(self, count: int, done: Callable[[list[PartAnswer]], None]) -> None:
        self._responses: dict[int, PartAnswer] = {}
        self._missing = count
        self._done = done

    def tickets(self) -> tuple[PartReply[PartAnswer], ...]:
        """One for each part."""
        return tuple(PartReply(self, place) for place in range(self._missing))

    def put(self, place: int, response: PartAnswer) -> None:
        """The answer of one part."""
        self._responses[place] = response
        self._missing -= 1
        if not self._missing:
            self._done([self._responses[place] for place in sorted(self._responses)])
