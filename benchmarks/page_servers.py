"""`grouplake dashboard` as a process, and viewers of its pages."""

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

_PROGRAM = Path(sys.executable).with_name("grouplake")
_TIMEOUT_SECONDS = 120
_PAGES = "/c/bench/"


class PageServer:
    """A running server with the cluster `bench`. Requests of one thread use one connection, as those of a browser do."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.pid = process.pid
        self.address = address
        self._connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_SECONDS)

    def get(self, page: str) -> tuple[float, bytes]:
        """Seconds from the request for a page to the last byte of the response, and the body as it was sent, compressed."""
        started = time.perf_counter()
        body = self._read(f"{_PAGES}{page}", {"Accept-Encoding": "gzip"})
        return time.perf_counter() - started, body

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def url(self, page: str) -> str:
        """The address of a page."""
        return f"http://{self.address}{_PAGES}{page}"

    def newest_batch(self) -> int:
        """The batch that pages show."""
        batch: int = json.loads(self._read(f"{_PAGES}alerts.json", {}))["batch_id"]
        return batch

    def _read(self, path: str, headers: Mapping[str, str]) -> bytes:
        self._connection.request("GET", path, headers=dict(headers))
        response = self._connection.getresponse()
        body = response.read()
        assert response.status == http.client.OK, f"{path}: {response.status} {body[:200]!r}"
        return body

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
            with closing(server):
                yield server
        finally:
            process.terminate()


class Viewers:
    """Pages in live mode: each has a stream of events and, at a new batch, fetches its page again."""

    def __init__(self, server: PageServer, pages: Sequence[str]) -> None:
        """Returns once all streams are open."""
        self._address = server.address
        self._lock = threading.Lock()
        #: Seconds from the event of a batch to the last byte of the page, of all viewers.
        self._seconds: list[float] = []
        self._open = threading.Semaphore(0)
        for page in pages:
            threading.Thread(target=self._view, args=(f"{_PAGES}{page}",), daemon=True).start()
        for _ in pages:
            self._open.acquire()

    def _view(self, path: str) -> None:
        with closing(http.client.HTTPConnection(self._address)) as stream:
            stream.request("GET", f"{_PAGES}events")
            with stream.getresponse() as events:
                self._open.release()
                while not events.readline().startswith(b"event: batch"):
                    continue
                seconds = self._fetch(path)
        with self._lock:
            self._seconds.append(seconds)

    def _fetch(self, path: str) -> float:
        with closing(http.client.HTTPConnection(self._address, timeout=_TIMEOUT_SECONDS)) as connection:
            started = time.perf_counter()
            connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
            response = connection.getresponse()
            response.read()
            return time.perf_counter() - started if response.status == http.client.OK else float("nan")

    def wait_for(self, count: int) -> list[float]:
        """Seconds of `count` pages, once they are fetched; not a number for one that failed."""
        done, since = 0, time.monotonic()
        while done < count and time.monotonic() - since < _TIMEOUT_SECONDS:
            time.sleep(0.05)
            if len(self._seconds) > done:
                done, since = len(self._seconds), time.monotonic()
        assert done >= count, f"{done} of {count} pages were fetched"
        return self._seconds
