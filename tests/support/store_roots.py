"""Fixtures' code for tests on object stores: servers that start once, and the way to them in the environment."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from object_stores import StoreServer, azurite, fake_gcs_server, moto_server

SERVERS = {"s3": moto_server, "azure": azurite, "gcs": fake_gcs_server}
#: Their conditional writes are exclusive; see `object_stores`.
EXCLUSIVE = ("azure", "gcs")

#: Variables of the machine that would lead a client elsewhere.
_OTHERS = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION")


class Servers:
    """One server of each kind, started when it is first needed."""

    def __init__(self, running: ExitStack) -> None:
        self._running = running
        self._started: dict[str, StoreServer] = {}

    def of(self, kind: str) -> StoreServer:
        """The server of a kind of SERVERS."""
        if kind not in self._started:
            self._started[kind] = self._running.enter_context(SERVERS[kind]())
        return self._started[kind]


@contextmanager
def running_servers() -> Iterator[Servers]:
    """Servers that end with the context."""
    with ExitStack() as running:
        yield Servers(running)


def lead_to(server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment with which clients of this process and of its children find the server."""
    for name in _OTHERS:
        monkeypatch.delenv(name, raising=False)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
