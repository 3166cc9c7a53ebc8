"""Connections that can be cut: listeners on 127.0.0.1 that pass bytes on to servers and back.

Bytes that arrive during a cut are passed on at its end, as TCP does after an outage of the network, unless their sender has given
up the connection. A reset closes connections instead.
"""

import asyncio
import socket
from collections.abc import Iterable
from enum import StrEnum
from functools import partial

from relays import Relays, read, write


class Cut(StrEnum):
    """What does not pass: nothing in either direction, no answers, or no connections at all."""

    BOTH = "both directions"
    ANSWERS = "answers"
    RESET = "reset"


class Link:
    """One listener and its server. `cut` and `heal` run in the thread of the relays."""

    def __init__(self, relays: Relays, port: int, target: int) -> None:
        self._requests, self._answers = asyncio.Event(), asyncio.Event()
        self._requests.set()
        self._answers.set()
        self._relay = relays.listen(port, target, partial(_copy, self._requests), partial(_copy, self._answers))

    def cut(self, what: Cut) -> None:
        match what:
            case Cut.BOTH:
                self._requests.clear()
                self._answers.clear()
            case Cut.ANSWERS:
                self._answers.clear()
            case Cut.RESET:
                self._relay.refuse()

    def heal(self) -> None:
        self._relay.serve()
        self._requests.set()
        self._answers.set()


async def _copy(passes: asyncio.Event, source: socket.socket, target: socket.socket) -> None:
    while data := await read(source):
        await passes.wait()
        await write(target, data)


class Links:
    """Links of (listening port, port of the server) pairs. A context manager."""

    def __init__(self, ports: Iterable[tuple[int, int]]) -> None:
        self._ports = tuple(ports)
        self._relays = Relays("links")
        self._links: dict[int, Link] = {}

    def __enter__(self) -> "Links":
        self._relays.__enter__()
        for port, target in self._ports:
            self._links[port] = Link(self._relays, port, target)
        return self

    def __exit__(self, *_: object) -> None:
        self._relays.__exit__()

    def cut(self, ports: Iterable[int], what: Cut) -> None:
        """Cut the links with these listening ports."""
        for port in ports:
            self._relays.call(self._links[port].cut, what)

    def heal(self, ports: Iterable[int]) -> None:
        """Let the links pass everything again."""
        for port in ports:
            self._relays.call(self._links[port].heal)
