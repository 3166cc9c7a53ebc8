"""Listeners on 127.0.0.1 that relay connections to servers, in a thread of their own. What passes is up to their users."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from patience import PATIENCE_SECONDS

HOST = "127.0.0.1"
_CHUNK = 65_536

#: Passes bytes on from one socket to another until the first one is closed.
Direction = Callable[[socket.socket, socket.socket], Awaitable[None]]


async def read(source: socket.socket) -> bytes:
    """Some bytes; none if the other side has closed the connection."""
    return await asyncio.get_running_loop().sock_recv(source, _CHUNK)


async def write(target: socket.socket, data: bytes) -> None:
    """Pass bytes on."""
    await asyncio.get_running_loop().sock_sendall(target, data)


async def copy(source: socket.socket, target: socket.socket) -> None:
    """Pass everything on: the usual direction of answers."""
    while data := await read(source):
        await write(target, data)


class Relay:
    """One listener and its server. Its methods run in the loop of `Relays`.

    By sockets and not by asyncio's servers, which leave a connection open that was accepted while they are closed.
    """

    def __init__(self, port: int, target: int, requests: Direction, answers: Direction) -> None:
        self._target, self._requests, self._answers = target, requests, answers
        self._loop = asyncio.get_running_loop()
        self._refuses = False
        self._connections: set[asyncio.Task[None]] = set()
        self._listener = socket.create_server((HOST, port))
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener, self._accept)

    def refuse(self) -> None:
        """Close all connections, and each new one."""
        self._refuses = True
        self._close_connections()

    def serve(self) -> None:
        """Take connections again."""
        self._refuses = False

    async def stop(self) -> None:
        self._loop.remove_reader(self._listener)
        # connections that are not accepted yet are reset
        self._listener.close()
        self._close_connections()
        await asyncio.gather(*self._connections, return_exceptions=True)

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
        # OSError: the server is not there, or a side has ended
        with suppress(OSError), socket.socket() as server:
            server.setblocking(False)
            await self._loop.sock_connect(server, (HOST, self._target))
            directions = [
                asyncio.ensure_future(self._requests(client, server)),
                asyncio.ensure_future(self._answers(server, client)),
            ]
            try:
                await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in directions:
                    each.cancel()
                await asyncio.gather(*directions, return_exceptions=True)


class Relays:
    """The thread of relays. A context manager, which stops them at its end."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._relays: list[Relay] = []

    def __enter__(self) -> "Relays":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._relays:
            asyncio.run_coroutine_threadsafe(each.stop(), self._loop).result(PATIENCE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def listen(self, port: int, target: int, requests: Direction, answers: Direction = copy) -> Relay:
        """Relay connections to `port` to the server at the port `target`."""
        relay: Relay = self.call(Relay, port, target, requests, answers)
        self._relays.append(relay)
        return relay

    def call(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in the thread."""

        async def called() -> Any:
            return work(*arguments)

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result(PATIENCE_SECONDS)
