"""What the proxies of the tests share: requests to the upstream server, and answers to the client."""

import http.client
from collections.abc import Iterable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

from patience import PATIENCE_SECONDS

#: Headers of one connection.
_OWN = ("transfer-encoding", "connection", "content-length")


class ProxyHandler(BaseHTTPRequestHandler):
    """A request to a proxy in front of `upstream`, an address such as `127.0.0.1:80`."""

    protocol_version = "HTTP/1.1"
    upstream: str

    def body(self) -> bytes:
        """The body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Send a request to the upstream server, and return status, headers and body of its answer."""
        connection = http.client.HTTPConnection(self.upstream, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, body=body, headers=dict(headers))
            found = connection.getresponse()
            return found.status, dict(found.getheaders()), found.read()
        finally:
            connection.close()

    def pass_on(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Answer as the upstream server answers the same request with these headers."""
        status, found, text = self.ask(self.command, self.path, body, headers)
        self.answer(status, found.items(), text, found.get("Content-Length") if self.command == "HEAD" else None)

    def answer(self, status: int, headers: Iterable[tuple[str, str]], body: bytes, length: str | None = None) -> None:
        """Answer the client. `length` is that of the body that a HEAD request does not get."""
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _OWN:
                self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(body)))
        # a client may have given up
        with suppress(BrokenPipeError, ConnectionResetError):
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""
