"""Connections that can be cut: listeners on 127.0.0.1 that pass bytes on to servers and back.

Bytes that arrive during a cut are passed on at its end, as TCP does after an outage of the network, unless their sender has given
up the connection. A reset closes connections instead.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from enum import StrEnum
from typing import Any

from patience import PATIENCE_SECONDS

_HOST = "127.0.0.1"
_CHUNK = 65_536


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
        self._loop = asyncio.get_running_loop()
        self._requests, self._answers = asyncio.Event(), asyncio.Event()
        self._refuses = False
        self._connections: set[asyncio.Task[None]] = set()
        self._listener = socket.create_server((_HOST, port))
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener, self._accept)
        self.heal()

    async def stop(self) -> None:
        self._loop.remove_reader(self._listener)
        # connections that are not accepted yet are reset
        self._listener.close()
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
            # once: a second one would end the wait for its directions
            if not each.cancelling():
                each.cancel()

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            client, _ = self._listener.accept()
            if self._refuses:
                client.close()
                return
            client.setblocking(False)
            task = self._loop.create_task(self._pass_on(client))
            self._connections.add(task)
            # also of a task that is cancelled before it begins
            task.add_done_callback(lambda _: client.close())
            task.add_done_callback(self._connections.discard)

    async def _pass_on(self, client: socket.socket) -> None:
        with suppress(OSError), socket.socket() as server:
            server.setblocking(False)
            await self._loop.sock_connect(server, (_HOST, self._target))
            directions = [
                asyncio.ensure_future(self._copy(client, server, self._requests)),
                asyncio.ensure_future(self._copy(server, client, self._answers)),
            ]
            try:
                await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in directions:
                    each.cancel()
                await asyncio.gather(*directions, return_exceptions=True)

    async def _copy(self, source: socket.socket, target: socket.socket, passes: asyncio.Event) -> None:
        while data := await self._loop.sock_recv(source, _CHUNK):
            await passes.wait()
            await self._loop.sock_sendall(target, data)


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

    async def _stop(self) -> None:
        for link in self._links.values():
            await link.stop()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def _call(self, work: Callable[..., None], *arguments: Any) -> None:
        async def call() -> None:
            work(*arguments)

        self._run(call())
