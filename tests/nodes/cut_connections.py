"""Connections that can be cut: listeners on 127.0.0.1 that pass bytes on to servers and back.

Bytes that arrive during a cut are passed on at its end, as TCP does after an outage of the network, unless their sender has given
up the connection. A reset closes connections instead.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from enum import StrEnum
from typing import Any

from patience import PATIENCE_SECONDS

_HOST = "127.0.0.1"
_CHUNK = 65_536
#: More turns of the event loop than it takes from the accept of a connection to its refusal.
_TURNS = 10


class Cut(StrEnum):
    """What does not pass: nothing in either direction, no answers, or no connections at all."""

    BOTH = "both directions"
    ANSWERS = "answers"
    RESET = "reset"


class Link:
    """One listener and its server. Its methods run in the loop of `Links`."""

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self._target = target
        self._requests, self._answers = asyncio.Event(), asyncio.Event()
        self._refuses = False
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.heal()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, _HOST, self.port)

    async def stop(self) -> None:
        assert self._server is not None
        # of a process that has just been killed, connections can be accepted and not yet passed on
        self._refuses = True
        self._server.close()
        self._close_connections()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def cut(self, what: Cut) -> None:
        match what:
            case Cut.BOTH:
                self._requests.clear()
                self._answers.clear()
            case Cut.ANSWERS:
                self._answers.clear()
            case Cut.RESET:
                self._refuses = True
                self._close_connections()

    def heal(self) -> None:
        self._refuses = False
        self._requests.set()
        self._answers.set()

    def _close_connections(self) -> None:
        for each in self._connections:
            each.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        # a cancelled task of a server would be reported as an error
        with suppress(OSError, asyncio.CancelledError):
            if not self._refuses:
                await self._pass_on(reader, writer)
        self._connections.discard(task)
        writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        of_server, to_server = await asyncio.open_connection(_HOST, self._target)
        directions = [
            asyncio.ensure_future(_copy(reader, to_server, self._requests)),
            asyncio.ensure_future(_copy(of_server, writer, self._answers)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in directions:
                each.cancel()
            # before the wait, in which a reset may cancel this task once more
            to_server.close()
            await asyncio.gather(*directions, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passes: asyncio.Event) -> None:
    while data := await reader.read(_CHUNK):
        await passes.wait()
        writer.write(data)
        await writer.drain()


class Links:
    """A thread with the links of (listening port, port of the server) pairs. A context manager."""

    def __init__(self, ports: Iterable[tuple[int, int]]) -> None:
        self._ports = tuple(ports)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._links: dict[int, Link] = {}

    def __enter__(self) -> "Links":
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self, ports: Iterable[int], what: Cut) -> None:
        """Cut the links with these listening ports."""
        for port in ports:
            self._call(self._links[port].cut, what)

    def heal(self, ports: Iterable[int]) -> None:
        """Let the links pass everything again."""
        for port in ports:
            self._call(self._links[port].heal)

    async def _start(self) -> None:
        for port, target in self._ports:
            self._links[port] = Link(port, target)
            await self._links[port].start()

    async def _stop(self) -> None:
        for link in self._links.values():
            await link.stop()
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def _call(self, work: Callable[..., None], *arguments: Any) -> None:
        async def call() -> None:
            work(*arguments)

        self._run(call())
