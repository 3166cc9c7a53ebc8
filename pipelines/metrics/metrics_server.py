"""HTTP server of /metrics and /health in a thread, for the job. It needs no web framework."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from coordinator_core.service.net.addresses import ListenAddress
from pipelines.metrics.http_answer import HttpAnswer, metrics_answer
from pipelines.metrics.metrics_text import MetricsBody
from pipelines.runtime.errors import GrouplakeError

_TIMEOUT_SECONDS = 5
_TEXT = {"Content-Type": "text/plain; charset=utf-8"}


class MetricsServerError(GrouplakeError):
    """The address of `--metrics` cannot be used."""


class MetricsServer:
    """Serves what `metrics` returns, between `start` and `close`."""

    def __init__(self, listen: ListenAddress, metrics: Callable[[], MetricsBody]) -> None:
        """Bind the address. Raises MetricsServerError if that is not possible."""

        class Handler(_Handler):
            body = staticmethod(metrics)

        try:
            self._server = _MetricsServer((listen.host, listen.port), Handler)
        except OSError as error:
            raise MetricsServerError(f"cannot listen on {listen}: {error.strerror or error}") from error
        host, port = self._server.server_address[:2]
        self.address = ListenAddress(str(host), int(port))
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    def start(self) -> None:
        """Accept requests."""
        self._thread.start()

    def close(self) -> None:
        """Accept no more requests."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _MetricsServer(ThreadingHTTPServer):
    daemon_threads = True
    # a client that keeps its connection open must not hold up the end of the job
    block_on_close = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "grouplake"
    sys_version = ""
    timeout = _TIMEOUT_SECONDS
    body: Callable[[], MetricsBody]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            wanted = (self.headers.get(name, "") for name in ("If-None-Match", "Accept-Encoding", "Accept"))
            self._send(metrics_answer(self.body(), *wanted))
        elif path == "/health":
            self._send(HttpAnswer(200, {"Content-Type": "application/json"}, json.dumps({"status": "ok"}).encode()))
        else:
            self._send(HttpAnswer(404, _TEXT, b"unknown path: use /health or /metrics\n"))

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: standard error has the progress of the job."""

    def _send(self, answer: HttpAnswer) -> None:
        self.send_response(answer.code)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.code != 304:
            self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.content)
