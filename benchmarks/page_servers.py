"""`grouplake dashboard` as a process, and viewers of its pages."""

import http.client
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

_PROGRAM = Path(sys.executable).with_name("grouplake")
_TIMEOUT_SECONDS = 120


class PageServer:
    """A running server with one cluster. Requests of one thread use one connection, as those of a browser do."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.pid = process.pid
        self.address = address
        self._connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_SECONDS)

    def get(self, path: str) -> tuple[float, bytes]:
        """Seconds from the request to the last byte of the response, and the body as it was sent, compressed."""
        started = time.perf_counter()
        self._connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        response = self._connection.getresponse()
        body = response.read()
        seconds = time.perf_counter() - started
        assert response.status == http.client.OK, f"{path}: {response.status} {body[:200]!r}"
        return seconds, body

    def is_ready(self) -> bool:
        """True once all tables are loaded."""
        self._connection.request("GET", "/ready")
        response = self._connection.getresponse()
        response.read()
        return response.status == http.client.OK


@contextmanager
def page_server(*tables: str) -> Iterator[PageServer]:
    """A server that has loaded its tables."""
    command = [str(_PROGRAM), "dashboard", "--listen", "127.0.0.1:0", *(part for each in tables for part in ("--tables", each))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            server = PageServer(process, urlsplit(line.split()[2]).netloc)
            while not server.is_ready():
                time.sleep(0.1)
            yield server
        finally:
            process.terminate()


class Viewers:
    """Pages in live mode: each has a stream of events and, at a new batch, fetches its page again."""

    def __init__(self, address: str, paths: Sequence[str], events: str) -> None:
        self._address, self._events = address, events
        #: Seconds from a batch's event to the last byte of the page, of all viewers.
        self.seconds: list[float] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._view, args=(path,), daemon=True) for path in paths]
        for thread in self._threads:
            thread.start()

    def _view(self, path: str) -> None:
        stream = http.client.HTTPConnection(self._address)
        stream.request("GET", self._events)
        pages = http.client.HTTPConnection(self._address, timeout=_TIMEOUT_SECONDS)
        response = stream.getresponse()
        while line := response.readline():
            if not line.startswith(b"event: batch"):
                continue
            started = time.perf_counter()
            pages.request("GET", path, headers={"Accept-Encoding": "gzip"})
            answer = pages.getresponse()
            answer.read()
            assert answer.status == http.client.OK
            with self._lock:
                self.seconds.append(time.perf_counter() - started)

    def wait_for(self, count: int) -> list[float]:
        """Seconds of the first `count` pages, once they are fetched."""
        while len(self.seconds) < count:
            time.sleep(0.05)
        return self.seconds[:count]
