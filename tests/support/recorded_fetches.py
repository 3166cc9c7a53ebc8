"""A proxy in front of a coordinator that records the Fetch requests of its clients."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from coordinator_core.protocol import apis
from coordinator_core.protocol.cluster import FetchRequest
from coordinator_core.wire import read_request

_CHUNK = 65536


class RecordedFetches:
    """Listens at `address`, HOST:PORT, and forwards to `port` once that is set."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.port = 0
        self.fetches: list[FetchRequest] = []

    def record(self, frame: bytes) -> None:
        if int.from_bytes(frame[:2]) == apis.FETCH.number:
            self.fetches += [part for part in read_request(frame).parts if isinstance(part, FetchRequest)]


@contextmanager
def recorded_fetches() -> Iterator[RecordedFetches]:
    """A running proxy; it ends with the context."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            client: socket.socket = self.request
            with socket.create_connection(("127.0.0.1", recorded.port)) as node:
                back = threading.Thread(target=_forward, args=(node, client), daemon=True)
                back.start()
                buffer = b""
                with suppress(OSError):
                    while data := client.recv(_CHUNK):
                        node.sendall(data)
                        buffer += data
                        while len(buffer) >= 4 and len(buffer) >= (end := 4 + int.from_bytes(buffer[:4])):
                            recorded.record(buffer[4:end])
                            buffer = buffer[end:]
                    node.shutdown(socket.SHUT_WR)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        recorded = RecordedFetches(f"127.0.0.1:{server.server_address[1]}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield recorded
        finally:
            server.shutdown()


def _forward(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    # after a reset too: otherwise the client would wait for its answer
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
