"""Checks of the connection of a request: encryption, and host names of a server without authentication."""

import re

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.dashboard.responses import error_response
from pipelines.runtime.listen_address import is_loopback

#: Paths that answer every client, for probes of a supervisor.
OPEN = frozenset({"/health", "/ready/loaded"})
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")


class EncryptedTransport:
    """Refuses requests that crossed a network without TLS: they would carry a token or a password in clear text.

    It runs after uvicorn's ProxyHeadersMiddleware, so scheme and client are those that a trusted proxy forwarded.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["scheme"] != "https" and scope["path"] not in OPEN:
            client = scope.get("client")
            if client is None or not is_loopback(client[0]):
                message = "use https: this request came without TLS, or its proxy is not in dashboard.trusted_proxies"
                await error_response(Request(scope), 403, message)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class HostNames:
    """Refuses requests whose header Host is not a name or an address with a port.

    Readers of `127.0.0.1%name` and `127.0.0.1:80@name` differ about the host that they mean.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope)
            host = request.headers.get("host", "")
            if host and not _HOST.fullmatch(host):
                message = f"invalid Host {host[:100]!r}: use a name or an address, and a port"
                await error_response(request, 400, message)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class LocalHosts:
    """Refuses requests to other host names: a page on the web could otherwise reach the server by a name of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope)
            host = request.headers.get("host", "")
            name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
            if not is_loopback(name):
                message = (
                    f"host {name!r} is not a loopback name: a server that answers other names needs dashboard.credentials_file"
                )
                await error_response(request, 421, message)(scope, receive, send)
                return
        await self._app(scope, receive, send)
