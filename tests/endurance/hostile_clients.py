"""Clients that mean harm, at bounded rates: names, bytes, floods and requests without end."""

import contextlib
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import quote

import httpx
from confluent_kafka import KafkaException, TopicPartition
from patience import PATIENCE_SECONDS
from wire_connection import Wire

from coordinator_core.protocol import apis
from coordinator_core.protocol.cluster import ApiVersionsRequest
from pipelines.examples.private.kafka.clients import Clients

#: Names of groups, client ids and metadata.
NAMES: Sequence[str] = (
    "\x1b]0;owned\x07\x1b[2J",
    "<script>alert(1)</script>",
    "' OR 1=1 --",
    "../../../etc/passwd",
    "\u202egnillib\u202c",
    "a\nb\tc\rd",
    "%2e%2e%2f%00",
    "{{7*7}}${7*7}",
    "\u2028\ufeff\u200b",
    "x" * 200,
)
_PAUSE_SECONDS = 2.0
_FLOOD = 500
_HALF_OPEN = 5


class Nuisance:
    """Something that is done again and again by a thread of its own; `results` counts what came of it."""

    def __init__(self, name: str, act: Callable[[], str], pause: float = _PAUSE_SECONDS) -> None:
        self.results: Counter[str] = Counter()
        self._act = act
        self._pause = pause
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)

    def __enter__(self) -> "Nuisance":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._pause):
            self.results[self._act()] += 1


@contextmanager
def hostile_groups(bootstrap: str, topic: str) -> Iterator[Nuisance]:
    """Groups with hostile names and metadata, which commit every few seconds while a coordinator answers."""
    with Clients(bootstrap) as clients:
        members = [clients.consumer(name, client_id=name) for name in NAMES]
        offset = 0

        def commit() -> str:
            nonlocal offset
            offset += 1
            for name, member in zip(NAMES, members, strict=True):
                with contextlib.suppress(KafkaException):
                    member.commit(offsets=[TopicPartition(topic, 0, offset, name)], asynchronous=True)
                member.poll(0)
            return "committed"

        with Nuisance("hostile groups", commit) as nuisance:
            yield nuisance


def hostile_bytes(port: int, seed: int) -> Callable[[], str]:
    """A connection to a coordinator with bytes that are no request, a half request, or a flood of small ones."""
    chance = random.Random(seed)

    def garbage(wire: Wire) -> None:
        wire.socket.sendall(chance.randbytes(chance.randint(1, 2_000)))

    def half(wire: Wire) -> None:
        frame = wire.frame(apis.API_VERSIONS, 3, ApiVersionsRequest("half", "1"))
        wire.socket.sendall(frame[: len(frame) // 2])

    def flood(wire: Wire) -> None:
        wire.socket.sendall(wire.frame(apis.API_VERSIONS, 3, ApiVersionsRequest("flood", "1")) * _FLOOD)

    def act() -> str:
        kind = chance.choice((garbage, half, flood))
        try:
            wire = Wire(port)
            with wire.socket:
                kind(wire)
                wire.socket.settimeout(0.2)  # runs out: half of a request has no response
                wire.socket.recv(1 << 16)
        except OSError:
            pass
        return kind.__name__

    return act


class HostileVisitors:
    """Requests to a dashboard: every page of every hostile group, odd headers, unknown paths, requests that never end."""

    def __init__(self, url: str, cluster: str, seed: int) -> None:
        self._url, self._chance = url, random.Random(seed)
        groups = [quote(name, safe="") for name in NAMES]
        self._paths = [
            "/",
            "/ready",
            "/metrics",
            "/nope",
            *(f"/c/{cluster}/{page}" for page in ("", "groups", "topics", "changes", "alerts", "offsets-topic")),
            *(f"/c/{cluster}/groups/{group}{file}" for group in groups for file in ("", ".json")),
        ]
        self._headers: Sequence[dict[str, str]] = ({}, {}, {}, {"Host": "evil%@example"}, {"Last-Event-ID": "9" * 5_000})
        self._half_open: list[socket.socket] = []

    def visit(self) -> str:
        """One request, and the class of its status."""
        self._leave_half_open()
        try:
            found = httpx.get(
                self._url + self._chance.choice(self._paths),
                headers={"Accept": "text/html", **self._chance.choice(self._headers)},
                timeout=PATIENCE_SECONDS,
            )
        except httpx.HTTPError as error:
            return type(error).__name__
        return str(found.status_code)

    def close(self) -> None:
        for each in self._half_open:
            each.close()

    def _leave_half_open(self) -> None:
        """A connection whose request never ends; the oldest of several is closed."""
        with contextlib.suppress(OSError):
            address = httpx.URL(self._url)
            connection = socket.create_connection((address.host, address.port or 80), PATIENCE_SECONDS)
            connection.sendall(b"GET / HTTP/1.1\r\nHost: local")
            self._half_open.append(connection)
        while len(self._half_open) > _HALF_OPEN:
            self._half_open.pop(0).close()
