"""The server socket and its connections: connection limits, limits on the bytes of requests, and idle connections."""

import asyncio
from collections import Counter
from collections.abc import Callable
from socket import socket
from typing import Any

from coordinator_core.service.net.addresses import ListenAddress
from coordinator_core.service.net.connection import Connection
from coordinator_core.service.net.request_dispatcher import RequestDispatcher
from coordinator_core.service.runtime.background import BackgroundTasks
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.service.settings import ServiceSettings

#: Connections that wait to be accepted.
BACKLOG = 1024
_DRAIN_POLL_SECONDS = 0.005
#: Checks for idle connections per `connections.max.idle.ms`, but at least one check a second.
_IDLE_CHECKS = 4


class Listener:
    """The server socket on one address; `serve` starts accepting connections for a dispatcher."""

    def __init__(self, settings: ServiceSettings, observer: Observer, background: BackgroundTasks) -> None:
        self.settings = settings
        self._observer = observer
        self._background = background
        self._connections: set[Connection] = set()
        self._by_host: Counter[str] = Counter()
        self._held_bytes = 0
        self._server: asyncio.Server | None = None
        self._idle_check: asyncio.Task[None] | None = None
        self.now: Callable[[], float] = lambda: 0.0

    def __len__(self) -> int:
        return len(self._connections)

    async def start(self, address: ListenAddress | socket) -> ListenAddress:
        """Bind the address, unless it is a bound socket, and return it with the actual port, which the system chooses for port 0.

        Connections are accepted after `serve`. Raises OSError when the address cannot be bound.
        """
        loop = asyncio.get_running_loop()
        self.now = loop.time
        at: dict[str, Any] = {"sock": address} if isinstance(address, socket) else {"host": address.host, "port": address.port}
        self._server = await loop.create_server(lambda: Connection(self), **at, backlog=BACKLOG, start_serving=False)
        return ListenAddress(*self._server.sockets[0].getsockname()[:2])

    async def serve(self, dispatcher: RequestDispatcher) -> None:
        """Accept connections from now on."""
        if self._server is None:
            raise RuntimeError("the listener is not started: call start() before serve()")
        self.dispatcher = dispatcher
        await self._server.start_serving()
        seconds = min(self.settings.connections_max_idle_ms / 1000 / _IDLE_CHECKS, 1.0)
        self._idle_check = self._background.repeat("idle-connections", seconds, self._end_idle)

    def stop_accepting(self) -> None:
        """Accept no more connections and requests; requests in progress are still answered."""
        if self._server is not None:
            self._server.close()
        if self._idle_check is not None:
            self._idle_check.cancel()
        for connection in tuple(self._connections):
            connection.drain()

    async def wait_closed(self, seconds: float) -> None:
        """Wait until all connections are closed; close the remaining ones after this time."""
        give_up = self.now() + seconds
        while self._connections and self.now() < give_up:
            await asyncio.sleep(_DRAIN_POLL_SECONDS)
        for connection in tuple(self._connections):
            connection.end("the coordinator is shutting down")
        while self._connections:
            await asyncio.sleep(0)

    # ---- `ConnectionOwner`

    def admit(self, connection: Connection) -> bool:
        """Register the connection; False when `max.connections` or `max.connections.per.ip` is reached."""
        limit = None
        if len(self._connections) >= self.settings.max_connections:
            limit = f"max.connections reached: {self.settings.max_connections}"
        elif self._by_host[connection.host] >= self.settings.max_connections_per_ip:
            limit = f"max.connections.per.ip reached: {self.settings.max_connections_per_ip}"
        if limit is not None:
            self._observer.connection_refused(connection.client, limit)
            return False
        self._connections.add(connection)
        self._by_host[connection.host] += 1
        self._observer.connected()
        return True

    def gone(self, connection: Connection, reason: str | None) -> None:
        """Unregister a closed connection; `reason` is None when the client closed it."""
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        self._by_host[connection.host] -= 1
        if not self._by_host[connection.host]:
            del self._by_host[connection.host]
        self._observer.disconnected(connection.client, reason)

    def hold(self, count: int) -> None:
        """Add to the bytes of unanswered requests; above `queued.max.request.bytes`, close the connection that holds the most."""
        self._held_bytes += count
        most = self.settings.queued_max_request_bytes
        if self._held_bytes > most and self._connections:
            largest = max(self._connections, key=lambda connection: connection.held_bytes)
            largest.end(
                f"requests of all connections that are not answered exceed queued.max.request.bytes, which is {most}; "
                f"this connection holds the most: {largest.held_bytes} bytes"
            )

    def release(self, count: int) -> None:
        """Subtract from the bytes of unanswered requests."""
        self._held_bytes -= count

    async def _end_idle(self) -> None:
        most = self.settings.connections_max_idle_ms / 1000
        for connection in tuple(self._connections):
            if connection.is_idle_since(self.now() - most):
                connection.end(f"idle for longer than connections.max.idle.ms, which is {self.settings.connections_max_idle_ms}")
