"""The server: its socket, its start and its end. As a process of its own it ends after a signal."""

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Iterator

import uvicorn

from coordinator_core.service.net.addresses import ListenAddress
from pipelines.dashboard.live.streams import Streams
from pipelines.dashboard.options import DashboardOptions
from pipelines.dashboard.path_names import MCP_PATH
from pipelines.dashboard.security.certificate import RenewedCertificate
from pipelines.dashboard.security.guard import guarded
from pipelines.dashboard.server.app import make_app
from pipelines.dashboard.server.connection import TimedConnection
from pipelines.dashboard.server.freed_memory import return_freed_memory
from pipelines.dashboard.server.page_frame import JobLines, no_job_lines
from pipelines.metrics.site import Export, Site
from pipelines.runtime.errors import GrouplakeError
from pipelines.runtime.progress import Progress
from pipelines.runtime.service_manager import notify_ready, notify_stopping

_SHUTDOWN_SECONDS = 5


class DashboardError(GrouplakeError):
    """The server cannot listen on its address."""


def serve(options: DashboardOptions, progress: Progress, export: Export | None = None) -> None:
    """Serve until SIGTERM or SIGINT; requests that have begun are answered first. `export` exports the series meanwhile.

    Raises:
        DashboardError: the address is in use or not of this machine.
    """
    return_freed_memory()
    site = Site(options.roots, options.metrics, options.poll_seconds, progress)
    server = DashboardServer(options, site, progress, prints_address=True)
    site.start()
    try:
        with contextlib.nullcontext() if export is None else export(site):
            server.run()
    finally:
        site.close()


class DashboardServer:
    """A server of the snapshots of `site`, which the caller starts after it and closes."""

    def __init__(
        self,
        options: DashboardOptions,
        site: Site,
        progress: Progress,
        *,
        job_lines: JobLines = no_job_lines,
        prints_address: bool = False,
    ) -> None:
        """Bind the address. Raises DashboardError if that is not possible."""
        self._listener = _listen(options.listen)
        host, port = self._listener.getsockname()[:2]
        self.address = ListenAddress(host, port)
        streams = Streams(options.roots, options.max_streams, options.max_user_streams)
        site.on_change(streams.publish)
        site.on_age(streams.publish_ages)
        tls = RenewedCertificate(options.security.tls, progress).context() if options.security.tls else None
        posts = frozenset({MCP_PATH} if options.has_mcp else ())
        config = uvicorn.Config(
            guarded(make_app(site, options, streams, job_lines), options.security, progress, posts),
            http=TimedConnection,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            lifespan="off",
            # the guard knows requests of HTTP only
            ws="none",
            # the guard applies forwarded headers, after it has seen the address of the proxy
            proxy_headers=False,
            ssl_context_factory=None if tls is None else lambda _config, _default: tls,
        )
        self._server = _PageServer(config, streams, self.address if prints_address else None)

    def run(self) -> None:
        """Serve until a signal, in the main thread, or until `stop`."""
        with self._listener:
            asyncio.run(self._server.serve(sockets=[self._listener]))

    def stop(self) -> None:
        """End `run` after the pending requests. Any thread may call it."""
        self._server.should_exit = True


class _PageServer(uvicorn.Server):
    """Prints the line that a supervising process waits for, once connections are accepted."""

    def __init__(self, config: uvicorn.Config, streams: Streams, address: ListenAddress | None) -> None:
        super().__init__(config)
        self._streams = streams
        self._address = address

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while the server runs. Unlike uvicorn's method, it does not raise them again: the exit code is 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._address is not None:
            scheme = "https" if self.config.is_ssl else "http"
            print(f"listening on {scheme}://{self._address}/ (metrics: /metrics)", flush=True)
            notify_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # streams never end by themselves, and uvicorn waits for pending responses
        self._streams.close()
        if self._address is not None:
            notify_stopping()
        await super().shutdown(sockets)


def _listen(address: ListenAddress) -> socket.socket:
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
            listener.listen(128)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise DashboardError(f"cannot listen on {address}: {error.strerror or error}") from error
    return listener
