"""HTTP server in a thread for probes and scrapes, for processes without a web framework."""

import json
import threading
from collections.abc import Callable, Mapping
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from coordinator_core.service.net.addresses import ListenAddress

_TIMEOUT_SECONDS = 5
_TEXT = {"Content-Type": "text/plain; charset=utf-8"}


class HttpAnswer(NamedTuple):
    """Status code, headers and content."""

    code: int
    headers: dict[str, str]
    content: bytes


#: Headers of a request → the answer.
Answer = Callable[[Message], HttpAnswer]


class ProbeServer:
    """Answers GET and HEAD at fixed paths, between `start` and `close`."""

    def __init__(self, listen: ListenAddress, paths: Mapping[str, Answer]) -> None:
        """Bind the address. Raises OSError if that is not possible."""

        class Handler(_Handler):
            answers = paths

        self._server = _Server((listen.host, listen.port), Handler)
        host, port = self._server.server_address[:2]
        self.address = ListenAddress(str(host), int(port))
        self._thread = threading.Thread(target=self._server.serve_forever, name="probes", daemon=True)

    def start(self) -> None:
        """Accept requests."""
        self._thread.start()

    def close(self) -> None:
        """Accept no more requests."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # a client that keeps its connection open must not hold up the end of the process
    block_on_close = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "grouplake"
    sys_version = ""
    timeout = _TIMEOUT_SECONDS
    answers: Mapping[str, Answer]

    def do_GET(self) -> None:
        answer = self.answers.get(self.path.partition("?")[0])
        if answer is None:
            known = " or ".join(sorted(self.answers))
            self._send(HttpAnswer(404, _TEXT, f"unknown path: use {known}\n".encode()))
        else:
            self._send(answer(self.headers))

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: standard error has the progress of the process."""

    def _send(self, answer: HttpAnswer) -> None:
        self.send_response(answer.code)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.code != 304:
            self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.content)


def health(problem: Callable[[], str | None]) -> Answer:
    """The answer at `/health`: 200, or 503 with the text of `problem`."""

    def answer(_headers: Message) -> HttpAnswer:
        found = problem()
        body = {"status": "ok"} if found is None else {"status": "failing", "message": found}
        return HttpAnswer(200 if found is None else 503, {"Content-Type": "application/json"}, json.dumps(body).encode())

    return answer
