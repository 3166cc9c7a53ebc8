"""`/mcp` at the page: streamable HTTP without sessions, behind the page's own checks, roles and encryption."""

from mcp.server.mcpserver import MCPServer
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from pipelines.dashboard.responses import error_response

#: Bytes of a request; the longest has a query.
_MOST_REQUEST_BYTES = 262_144


class StreamableHttp:
    """An ASGI application. Each request has a manager of its own, so nothing remains of it and nothing has to be closed."""

    def __init__(self, protocol: MCPServer) -> None:
        self._protocol = protocol

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        # browsers send it; a page of another site must not ask in the name of its visitor
        if "origin" in request.headers:
            await error_response(request, 403, "requests from pages of browsers are refused")(scope, receive, send)
            return
        if request.method != "POST":
            response = error_response(request, 405, "this server keeps no sessions and sends no events: use POST")
            response.headers["Allow"] = "POST"
            await response(scope, receive, send)
            return
        manager = StreamableHTTPSessionManager(
            self._protocol._lowlevel_server, json_response=True, stateless=True, max_request_body_size=_MOST_REQUEST_BYTES
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)
