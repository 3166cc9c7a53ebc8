"""One of the two coordinators that get the same requests: its connections, and the ids that only it has given out."""

import select
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from client_codecs import ALL_CODECS
from patience import PATIENCE_SECONDS

from coordinator_core.protocol.api import AnyApi
from coordinator_core.wire.header_codec import response_body
from coordinator_core.wire.library import message_codec
from coordinator_core.wire.server_side import CODECS

#: Instead of a response.
CLOSED = {"connection": "closed"}
CLIENT_ID = "differential"


@dataclass(frozen=True)
class Bound:
    """A value that each side has given out itself: a member id, a producer id, a topic id."""

    name: str
    #: Until the side has given one out.
    default: Any


@dataclass(frozen=True)
class Step:
    """A request of an actor, who has one connection. `body` has the library's field names, and `Bound` values."""

    actor: int
    api: AnyApi
    version: int
    body: Mapping[str, Any]

    def __str__(self) -> str:
        return f"actor {self.actor}: {self.api.name} v{self.version} {self.body}"


class Side:
    """Connections to one coordinator, one per actor, each with at most one request in progress."""

    def __init__(self, name: str, port: int) -> None:
        self.name = name
        self.port = port
        self.bindings: dict[str, Any] = {}
        self._sockets: dict[int, socket.socket] = {}
        self._steps: dict[int, Step] = {}
        self._received: dict[int, bytes] = {}

    def close(self) -> None:
        for each in self._sockets.values():
            each.close()
        self._sockets.clear()
        self._steps.clear()
        self._received.clear()

    @property
    def waiting(self) -> frozenset[int]:
        """Actors whose request is not answered."""
        return frozenset(self._steps)

    def send(self, step: Step) -> None:
        connection = self._sockets.get(step.actor)
        if connection is None:
            connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets[step.actor] = connection
        codec = CODECS[step.api]
        body = _message(codec.request, self.resolved(step.body))
        frame = message_codec(codec.request, step.version).encode_request(body, 1, CLIENT_ID)
        self._steps[step.actor] = step
        self._received[step.actor] = b""
        connection.sendall(len(frame).to_bytes(4) + frame)

    def resolved(self, value: Any) -> Any:
        """The value with the ids of this side."""
        if isinstance(value, Bound):
            return self.bindings.get(value.name, value.default)
        if isinstance(value, Mapping):
            return {key: self.resolved(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.resolved(each) for each in value]
        return value(self) if callable(value) else value

    def receive(self, seconds: float) -> dict[int, dict[str, Any]]:
        """Responses that arrive within this time, by actor; returns after the first ones."""
        sockets = {self._sockets[actor]: actor for actor in self._steps}
        if not sockets:
            return {}
        readable, _, _ = select.select(list(sockets), [], [], seconds)
        answers = {}
        for each in readable:
            found = self._read(sockets[each], each)
            if found is not None:
                answers[sockets[each]] = found
        return answers

    def _read(self, actor: int, connection: socket.socket) -> dict[str, Any] | None:
        try:
            data = connection.recv(1 << 20)
        except ConnectionError:
            data = b""
        if not data:
            connection.close()
            del self._sockets[actor], self._steps[actor], self._received[actor]
            return CLOSED
        received = self._received[actor] + data
        self._received[actor] = received
        if len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4]):
            return None
        step = self._steps.pop(actor)
        frame = received[4:]
        body_at = response_body(frame, step.api.versions.is_flexible(step.version))
        decoded = message_codec(ALL_CODECS[step.api].response, step.version).decode(frame, body_at)
        return as_dict(decoded, step.version)

    def ask(self, step: Step, seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """Send a request that is answered at once."""
        self.send(step)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            answers = self.receive(0.1)
            if step.actor in answers:
                return answers[step.actor]
        raise TimeoutError(f"{self.name} does not answer {step}")


def _message(kind: Any, values: Mapping[str, Any]) -> Any:
    """A message of the library with its nested structures."""
    return kind(**_fields(kind._struct._fields, values))


def _fields(known: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    fields = {field.name: field for field in known}
    return {name: _value(fields[name], value) for name, value in values.items()}


def _value(field: Any, value: Any) -> Any:
    if not field.is_struct_array() or value is None:
        return value
    nested = field.array_of._fields
    empty = {"tags": None, "unknown_tags": None, **{each.name: each.default for each in nested}}
    return [SimpleNamespace(**(empty | _fields(nested, each))) for each in value]


def as_dict(message: Any, version: int) -> dict[str, Any]:
    """The fields of a message in this version, nested ones included."""
    found = {}
    for field in message._struct._fields:
        if field.for_version_q(version):
            found[field.name] = _plain(getattr(message, field.name, None), version)
    return found


def _plain(value: Any, version: int) -> Any:
    if hasattr(value, "_struct"):
        return as_dict(value, version)
    if isinstance(value, (list, tuple)):
        return [_plain(each, version) for each in value]
    return value
