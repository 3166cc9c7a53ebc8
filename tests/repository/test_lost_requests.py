"""The proxy of `lost_requests` passes requests on whole, and nothing after a lost one."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread

import pytest
from lost_requests import LostRequests
from patience import PATIENCE_SECONDS

from pipelines.examples.private.kafka.ports import PortReservation

_HOST = "127.0.0.1"
_REQUEST = struct.pack(">i", 5) + b"fetch"


class _Returning(BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(100):
            self.request.sendall(data)


@contextmanager
def proxied(share: float) -> Iterator[tuple[LostRequests, socket.socket]]:
    """A connection through a proxy to a server that returns what it gets."""
    reserved = PortReservation()
    with ThreadingTCPServer((_HOST, 0), _Returning) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        with (
            LostRequests([(reserved.port, server.server_address[1])], share, 1) as proxy,
            socket.create_connection((_HOST, reserved.port), PATIENCE_SECONDS) as client,
        ):
            yield proxy, client
        server.shutdown()
        thread.join()
    reserved.release()


def test_a_request_is_passed_on_once_all_of_it_is_there() -> None:
    with proxied(0.0) as (proxy, client):
        client.sendall(_REQUEST + _REQUEST[:6])
        assert client.recv(100) == _REQUEST
        client.sendall(_REQUEST[6:])
        assert client.recv(100) == _REQUEST
        assert (proxy.passed, proxy.lost) == (2, 0)


def test_nothing_passes_after_a_lost_request() -> None:
    with proxied(1.0) as (proxy, client):
        client.sendall(2 * _REQUEST)
        client.settimeout(0.2)  # runs out: nothing passes
        with pytest.raises(TimeoutError):
            client.recv(100)
        assert (proxy.passed, proxy.lost) == (0, 1)
