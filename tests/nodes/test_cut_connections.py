"""Links pass bytes on, hold them back, and close connections."""

import gc
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer

import pytest
from cut_connections import Cut, Links
from patience import PATIENCE_SECONDS

from pipelines.examples.private.kafka.ports import PortReservation

_HOST = "127.0.0.1"


class _Echo(BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(100):
            self.request.sendall(data)


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server that returns what it gets."""
    with ThreadingTCPServer((_HOST, 0), _Echo) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running.server_address[1]
        running.shutdown()
        thread.join()


@contextmanager
def link_to(server: int) -> Iterator[tuple[Links, int]]:
    reserved = PortReservation()
    with Links([(reserved.port, server)]) as links:
        yield links, reserved.port
    reserved.release()


def connected(port: int) -> socket.socket:
    return socket.create_connection((_HOST, port), PATIENCE_SECONDS)


@pytest.mark.parametrize("what", [Cut.BOTH, Cut.ANSWERS])
def test_a_cut_holds_bytes_back_until_it_is_healed(server: int, what: Cut) -> None:
    with link_to(server) as (links, port), connected(port) as client:
        client.sendall(b"before")
        assert client.recv(100) == b"before"
        links.cut([port], what)
        client.sendall(b"during")
        client.settimeout(0.2)  # runs out: nothing passes
        with pytest.raises(TimeoutError):
            client.recv(100)
        links.heal([port])
        client.settimeout(PATIENCE_SECONDS)
        assert client.recv(100) == b"during"


def test_a_reset_closes_connections_and_takes_no_new_ones(server: int) -> None:
    with link_to(server) as (links, port):
        with connected(port) as client:
            client.sendall(b"before")
            assert client.recv(100) == b"before"
            links.cut([port], Cut.RESET)
            assert client.recv(100) == b""
        with connected(port) as client:
            assert client.recv(100) == b""
        links.heal([port])
        with connected(port) as client:
            client.sendall(b"after")
            assert client.recv(100) == b"after"


def test_connections_that_were_just_made_are_closed_at_the_end(server: int) -> None:
    """An unclosed one would be reported as a warning, which is an error here."""
    with link_to(server) as (_, port):
        clients = [connected(port) for _ in range(20)]
    for client in clients:
        # reset: the listener had not accepted it yet
        with client, suppress(ConnectionResetError):
            assert client.recv(100) == b""
    gc.collect()
