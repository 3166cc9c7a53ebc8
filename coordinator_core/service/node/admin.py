"""/health and /metrics over HTTP/1.1, for probes and collectors on this machine. One request per connection."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

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

Answer = tuple[int, str, bytes]


class ObservedNode(Protocol):
    """The state that /health depends on; see `NodeState`."""

    def partitions(self) -> Mapping[str, Mapping[str, int]]:
        """Return the number of partitions by topic and status."""

    def failures(self) -> Mapping[str, str]:
        """Return the reasons of failed partitions by TOPIC-NUMBER."""

    def failing_tasks(self) -> Mapping[str, str | None]:
        """Return the background tasks, with the error of the last run of each."""

    @property
    def shares_log(self) -> bool:
        """Whether partitions that are not loaded here have another owner."""

    @property
    def refused_appends(self) -> Mapping[str, str]:
        """Return the reasons of partitions whose log refuses appends, by TOPIC-NUMBER."""


class Admin:
    """HTTP server of /health and /metrics.

    `node` has the partitions and the background tasks, `metrics` returns the text for Prometheus.
    """

    def __init__(
        self,
        node: ObservedNode,
        metrics: Callable[[], bytes],
        observer: Observer,
    ) -> None:
        self._node = node
        self._metrics = metrics
        self._observer = observer
        self._server: asyncio.Server | None = None
        self.stopping = False

    async def start(self, address: ListenAddress) -> ListenAddress:
        """Start listening and return the actual address. Raises OSError when the address cannot be bound."""
        self._server = await asyncio.start_server(self._serve, address.host, address.port, limit=_MOST_HEADER_BYTES)
        name = self._server.sockets[0].getsockname()
        return ListenAddress(name[0], name[1])

    def close(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.close()

    def health(self) -> Answer:
        """Return 200 if every partition is active, takes appends, and no background task fails; otherwise 503 with the status.

        Of a log that nodes share, the partitions of this node count.
        """
        partitions: Counter[str] = Counter()
        for by_status in self._node.partitions().values():
            partitions.update(by_status)
        failing = {task: error for task, error in self._node.failing_tasks().items() if error is not None}
        refused = dict(self._node.refused_appends)
        if self.stopping:
            status = "stopping"
        elif partitions.get("failed"):
            status = "failed"
        elif not set(partitions) <= ({"active", "unloaded"} if self._node.shares_log else {"active"}):
            status = "loading"
        else:
            status = "degraded" if failing or refused else "ok"
        found: dict[str, object] = {"status": status, "partitions": partitions}
        failures = self._node.failures()
        if failures:
            found["failed_partitions"] = dict(failures)
        if failing:
            found["failing_tasks"] = failing
        if refused:
            found["refused_appends"] = refused
        body = json.dumps(found).encode() + b"\n"
        return 200 if status == "ok" else 503, _JSON, body

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                code, kind, body = self._answer_or_error(head)
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

    def _answer_or_error(self, head: bytes) -> Answer:
        try:
            return self._answer(head)
        except Exception as error:
            self._observer.bug("/health and /metrics", error)
            return 500, _TEXT, b"unexpected error; see the log of the coordinator\n"

    def _answer(self, head: bytes) -> Answer:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3:
            return 400, _TEXT, b"invalid request line: use GET /health or GET /metrics\n"
        method, target, _ = words
        if method not in (b"GET", b"HEAD"):
            return 405, _TEXT, b"method not allowed: use GET or HEAD\n"
        path = target.split(b"?", 1)[0]
        if path == b"/health":
            return self.health()
        if path == b"/metrics":
            return 200, _TEXT, self._metrics()
        return 404, _TEXT, b"unknown path: use /health or /metrics\n"
