"""A proxy in front of an object store, in a process of its own: delta-rs holds Python's global lock during some requests.

`python store_proxy.py UPSTREAM RULE FILE` prints its port. The rule answers some requests itself or changes their headers, and
writes a line about each of these to FILE.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path

from patience import PATIENCE_SECONDS
from proxy_handler import ProxyHandler

#: Number of requests so far and headers, which it may change → status, code and message of an answer; None to pass it on.
Rule = Callable[[int, dict[str, str]], tuple[int, str, str] | None]


def _ignores_conditions(_number: int, headers: dict[str, str]) -> None:
    """As stores do that know no conditional writes."""
    headers.pop("If-None-Match", None)


def _refuses_conditions(_number: int, headers: dict[str, str]) -> tuple[int, str, str] | None:
    if "If-None-Match" in headers:
        return 501, "NotImplemented", "A header you provided implies functionality that is not implemented"
    return None


def _throttles(number: int, _headers: dict[str, str]) -> tuple[int, str, str] | None:
    return (503, "SlowDown", "Please reduce your request rate.") if number % 4 == 0 else None


def _expires(_number: int, headers: dict[str, str]) -> tuple[int, str, str] | None:
    """Reject keys after the time in their name, see `temporary_key`."""
    key = headers.get("Authorization", "").partition("Credential=")[2].partition("/")[0]
    expires = key.rpartition("-")[2]
    if expires.isdecimal() and time.time() > int(expires) / 1000:
        return 400, "ExpiredToken", "The provided token has expired."
    return None


def temporary_key(seconds: float) -> str:
    """An access key that the rule `expires` accepts for some seconds."""
    return f"key-{int((time.time() + seconds) * 1000)}"


RULES: dict[str, Rule] = {
    "counts": lambda _number, _headers: None,
    "ignores conditions": _ignores_conditions,
    "refuses conditions": _refuses_conditions,
    "throttles": _throttles,
    "expires": _expires,
}


@dataclass(frozen=True)
class StoreProxy:
    """A running proxy: its address, and the answers that it has given itself."""

    address: str
    _file: Path

    @property
    def answers(self) -> list[str]:
        """Status and code of its own answers."""
        return [line for line in self._file.read_text().splitlines() if not line.startswith("passed")]

    @property
    def requests(self) -> list[str]:
        """Method and path of the requests that it has passed on."""
        return [line.removeprefix("passed ") for line in self._file.read_text().splitlines() if line.startswith("passed")]


@contextmanager
def store_proxy(upstream: str, rule: str, file: Path) -> Iterator[StoreProxy]:
    """Run a proxy with a rule of RULES."""
    file.touch()
    command = [sys.executable, __file__, upstream, rule, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield StoreProxy(f"http://127.0.0.1:{int(process.stdout.readline())}", file)
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


#: Path at which a proxy gives temporary keys, as the agent of a container does, and for how long they are valid.
CREDENTIALS = "/credentials"
_KEY_SECONDS = 4


class _Handler(ProxyHandler):
    rule: Rule
    file: Path
    lock = threading.Lock()
    count = 0

    def forward(self) -> None:
        if self.path == CREDENTIALS:
            self.give_key()
            return
        body = self.body()
        headers = {name.title(): value for name, value in self.headers.items()}
        with self.lock:
            type(self).count += 1
            own = type(self).rule(self.count, headers)
            with self.file.open("a") as log:
                log.write(f"{own[0]} {own[1]}\n" if own else f"passed {self.command} {self.path}\n")
        if own is None:
            self.pass_on(body, headers)
            return
        text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{own[1]}</Code><Message>{own[2]}</Message></Error>'
        self.answer(own[0], [("Content-Type", "application/xml")], text.encode())

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward  # noqa: N815 - names that http.server looks for

    def give_key(self) -> None:
        expiration = datetime.now(UTC) + timedelta(seconds=_KEY_SECONDS)
        found = {
            "AccessKeyId": temporary_key(_KEY_SECONDS),
            "SecretAccessKey": "secret",
            "Token": "token",
            "Expiration": expiration.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        with self.lock, self.file.open("a") as log:
            log.write("200 key\n")
        self.answer(200, [("Content-Type", "application/json")], json.dumps(found).encode())


def main() -> None:
    """Serve until SIGTERM."""
    upstream, rule, file = sys.argv[1:]
    _Handler.upstream = upstream.removeprefix("http://")
    _Handler.rule, _Handler.file = staticmethod(RULES[rule]), Path(file)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
