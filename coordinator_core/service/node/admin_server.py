"""/health and /metrics over HTTP/1.1, for probes and collectors. One request per connection."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from socket import socket
from typing import Any, NamedTuple

from coordinator_core.service.net.addresses import ListenAddress
from coordinator_core.service.runtime.observer import Observer

_MOST_HEADER_BYTES = 8 * 1024
_TIMEOUT_SECONDS = 5.0
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
_JSON = "application/json"
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class AdminAnswer(NamedTuple):
    """Status, content type and body of a response."""

    status: int
    content_type: str
    body: bytes


def json_answer(health: Mapping[str, object]) -> AdminAnswer:
    """Return the answer to /health: 200 if its `status` is ok, otherwise 503."""
    return AdminAnswer(200 if health["status"] == "ok" else 503, _JSON, json.dumps(health).encode() + b"\n")


def text_answer(text: bytes) -> AdminAnswer:
    """Return the answer to /metrics."""
    return AdminAnswer(200, _TEXT, text)


class AdminServer:
    """HTTP server of /health and /metrics, whose answers the two functions return."""

    def __init__(
        self, health: Callable[[], Awaitable[AdminAnswer]], metrics: Callable[[], Awaitable[AdminAnswer]], observer: Observer
    ) -> None:
        self._answers = {b"/health": health, b"/metrics": metrics}
        self._observer = observer
        self._server: asyncio.Server | None = None

    async def start(self, address: ListenAddress | socket) -> ListenAddress:
        """Start listening and return the actual address. Raises OSError when the address cannot be bound."""
        at: dict[str, Any] = {"sock": address} if isinstance(address, socket) else {"host": address.host, "port": address.port}
        self._server = await asyncio.start_server(self._serve, **at, limit=_MOST_HEADER_BYTES)
        return ListenAddress(*self._server.sockets[0].getsockname()[:2])

    def close(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                code, kind, body = await self._answer_or_error(head)
                writer.write(
                    f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                    "Connection: close\r\n\r\n".encode()
                )
                if not head.startswith(b"HEAD "):
                    writer.write(body)
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
        finally:
            writer.close()

    async def _answer_or_error(self, head: bytes) -> AdminAnswer:
        try:
            return await self._answer(head)
        except Exception as error:
            self._observer.bug("/health and /metrics", error)
            return AdminAnswer(500, _TEXT, b"unexpected error; see the log of the coordinator\n")

    async def _answer(self, head: bytes) -> AdminAnswer:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3:
            return AdminAnswer(400, _TEXT, b"invalid request line: use GET /health or GET /metrics\n")
        method, target, _ = words
        if method not in (b"GET", b"HEAD"):
            return AdminAnswer(405, _TEXT, b"method not allowed: use GET or HEAD\n")
        answer = self._answers.get(target.split(b"?", 1)[0])
        if answer is None:
            return AdminAnswer(404, _TEXT, b"unknown path: use /health or /metrics\n")
        return await answer()
