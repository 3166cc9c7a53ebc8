"""The server socket and its connections: who is let in, how much they may hold together, and who is idle for too long."""

import asyncio
from collections import Counter
from collections.abc import Callable

from coordinator_core.service.addresses import Address
from coordinator_core.service.background import BackgroundTasks
from coordinator_core.service.connection import Connection
from coordinator_core.service.observer import Observer
from coordinator_core.service.request_dispatcher import RequestDispatcher
from coordinator_core.service.settings import ServiceSettings

_BACKLOG = 1024
_DRAIN_POLL_SECONDS = 0.005
#: Idle connections are looked for this many times per `connections.max.idle.ms`, and once a second at most.
_IDLE_CHECKS = 4


class Listener:
    """Listens on an address, and serves `dispatcher` from `serve` on."""

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

    async def start(self, address: Address) -> Address:
        """Where it listens; the port is the system's choice if 0 was asked for. Raises OSError for an address that cannot be
        had. Nobody is let in yet."""
        loop = asyncio.get_running_loop()
        self.now = loop.time
        self._server = await loop.create_server(
            lambda: Connection(self), address.host, address.port, backlog=_BACKLOG, start_serving=False
        )
        name = self._server.sockets[0].getsockname()
        return Address(name[0], name[1])

    async def serve(self, dispatcher: RequestDispatcher) -> None:
        """From now on, connections are taken."""
        if self._server is None:
            raise RuntimeError("not listening yet")
        self.dispatcher = dispatcher
        await self._server.start_serving()
        seconds = min(self.settings.connections_max_idle_ms / 1000 / _IDLE_CHECKS, 1.0)
        self._idle_check = self._background.repeat("idle-connections", seconds, self._end_idle)

    def stop_accepting(self) -> None:
        """Nobody new, and nothing new from those who are there; what is under way is answered."""
        if self._server is not None:
            self._server.close()
        if self._idle_check is not None:
            self._idle_check.cancel()
        for connection in tuple(self._connections):
            connection.drain()

    async def wait_closed(self, seconds: float) -> None:
        """Until all connections are gone; those that are left after this time are cut off."""
        give_up = self.now() + seconds
        while self._connections and self.now() < give_up:
            await asyncio.sleep(_DRAIN_POLL_SECONDS)
        for connection in tuple(self._connections):
            connection.end("the service ends")
        while self._connections:
            await asyncio.sleep(0)

    # ---- what connections ask

    def admit(self, connection: Connection) -> bool:
        """Is there room, and for one more of this address?"""
        limit = None
        if len(self._connections) >= self.settings.max_connections:
            limit = f"max.connections is {self.settings.max_connections}"
        elif self._by_host[connection.host] >= self.settings.max_connections_per_ip:
            limit = f"max.connections.per.ip is {self.settings.max_connections_per_ip}"
        if limit is not None:
            self._observer.connection_refused(connection.client, limit)
            return False
        self._connections.add(connection)
        self._by_host[connection.host] += 1
        self._observer.connected()
        return True

    def gone(self, connection: Connection, reason: str | None) -> None:
        """The connection is closed."""
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        self._by_host[connection.host] -= 1
        if not self._by_host[connection.host]:
            del self._by_host[connection.host]
        self._observer.disconnected(connection.client, reason)

    def hold(self, count: int) -> None:
        """So many bytes of requests came. If that is more than all together may hold, who holds most is cut off."""
        self._held_bytes += count
        most = self.settings.queued_max_request_bytes
        if self._held_bytes > most and self._connections:
            greediest = max(self._connections, key=lambda connection: connection.held_bytes)
            greediest.end(f"of more than {most} bytes of requests that are not complete, it holds {greediest.held_bytes}")

    def release(self, count: int) -> None:
        """So many are not held any more."""
        self._held_bytes -= count

    async def _end_idle(self) -> None:
        most = self.settings.connections_max_idle_ms / 1000
        for connection in tuple(self._connections):
            if connection.is_idle_since(self.now() - most):
                connection.end(f"idle; connections.max.idle.ms is {self.settings.connections_max_idle_ms}")
