"""Headers of every response, and the refusal of every method but GET and HEAD."""

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines.dashboard.responses import READ, error_response

#: Pages load only what the server itself has, run no inline code, and are not shown inside of other pages.
_CONTENT_SECURITY_POLICY = (
    "default-src 'self'; style-src 'self'; script-src 'self'; img-src 'self' data:; object-src 'none'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'"
)
_HEADERS = {
    "Content-Security-Policy": _CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    # links keep no names of groups
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_HSTS = "max-age=31536000"


class SecurityHeaders:
    """Adds the headers to every response, those of errors included."""

    def __init__(self, app: ASGIApp, *, is_private: bool) -> None:
        """`is_private`: responses depend on the viewer."""
        self._app, self._is_private = app, is_private

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                # the scheme that a trusted proxy forwarded is known only now
                if scope["scheme"] == "https":
                    headers["Strict-Transport-Security"] = _HSTS
                if self._is_private:
                    control = headers.get("Cache-Control", "no-cache")
                    # files of the package are public
                    headers["Cache-Control"] = control if "public" in control else f"private, {control}"
                    headers.add_vary_header("Authorization, Cookie")
            await send(message)

        await self._app(scope, receive, send_with_headers)


class ReadingMethods:
    """Answers 405 to every method but GET and HEAD: no request changes anything.

    `posts` are the paths that answer POST too, because their protocol sends questions as a body.
    """

    def __init__(self, app: ASGIApp, posts: frozenset[str] = frozenset()) -> None:
        self._app, self._posts = app, posts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in READ and not self._is_question(scope):
            response = error_response(
                Request(scope), 405, "the server only reads: use GET or HEAD; a group is deleted in Kafka, and the tables follow"
            )
            response.headers["Allow"] = ", ".join(READ)
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_question(self, scope: Scope) -> bool:
        return scope["method"] == "POST" and scope["path"] in self._posts
