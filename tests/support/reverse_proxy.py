"""A small reverse proxy on loopback that ends TLS and forwards the address of the client, as the usual ones do."""

import http.client
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from posixpath import normpath
from urllib.parse import quote, unquote, urlsplit

from patience import PATIENCE_SECONDS


def normalised_path(target: str) -> str:
    """Path and query as a proxy forwards them that decodes the path, merges slashes, resolves dots, and encodes it again."""
    path, mark, query = target.partition("?")
    decoded = re.sub("/+", "/", unquote(path, errors="surrogateescape"))
    end = "/" if decoded.endswith("/") and decoded != "/" else ""
    return quote(normpath(decoded) + end, errors="surrogateescape") + mark + query


@contextmanager
def reverse_proxy(
    upstream: str,
    tls: ssl.SSLContext | None,
    *,
    address: str = "127.0.0.1",
    client: str = "203.0.113.5",
    forwarded_path: Callable[[str], str] = str,
) -> Iterator[str]:
    """A proxy in front of `upstream`, and its own address. It connects from `address`, and reports `client` as its client.

    `forwarded_path` makes the requested path, with its query, into the one that is forwarded.
    """
    target = urlsplit(upstream)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert target.hostname is not None
            connection = http.client.HTTPConnection(
                target.hostname, target.port, timeout=PATIENCE_SECONDS, source_address=(address, 0)
            )
            kept = {name: value for name, value in self.headers.items() if not name.lower().startswith("x-forwarded-")}
            # the addresses that the client itself claims are forwarded too, before its own
            claimed = [value for name, value in self.headers.items() if name.lower() == "x-forwarded-for"]
            forwarded = {"X-Forwarded-For": ", ".join([*claimed, client]), "X-Forwarded-Proto": "https" if tls else "http"}
            connection.request("GET", forwarded_path(self.path), headers={**kept, **forwarded})
            answer = connection.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "date"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            connection.close()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
