"""Servers that are not brokers, or broken ones: an error on the first response, and no memory for the sizes that they claim."""

import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from coordinator_core.log.errors import LogUnreachable
from coordinator_core.sources.kafka import KafkaSource

#: Correlation id of a request, after four bytes of length and two each of key and version.
CORRELATION_ID = slice(8, 12)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@pytest.fixture
def listener() -> Iterator[Callable[[Callable[[bytes], bytes]], str]]:
    """Answers every request by a function of its bytes; returns the address."""
    opened: list[socket.socket] = []

    def start(answer: Callable[[bytes], bytes]) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        opened.append(server)

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                    opened.append(connection)
                    connection.sendall(answer(connection.recv(4096)))
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        return f"kafka://127.0.0.1:{server.getsockname()[1]}/__consumer_offsets"

    yield start
    for each in opened:
        each.close()


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: bytes.fromhex("15030300020250"),
        lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n",
        lambda _: b"\xff\xff\xff\xff",
        lambda _: framed(b"no such request was made"),
        lambda request: framed(request[CORRELATION_ID] + b"\x00\x00\x7f\xff\xff\xff"),
        lambda request: framed(request[CORRELATION_ID] + b"\x00\x00\x80\x80\x80\x80\x80\x80\x80\x80\x80"),
        lambda request: framed(request[CORRELATION_ID] + b"\x00\x00\xff\xff\xff\xff\x0f"),
    ],
    ids=["TLS alert", "HTTP", "negative length", "unknown request", "many keys", "no varint", "endless array"],
)
def test_invalid_responses(listener: Callable[[Callable[[bytes], bytes]], str], answer: Callable[[bytes], bytes]) -> None:
    address = listener(answer)
    tracemalloc.start()
    try:
        with pytest.raises(LogUnreachable, match=r"no broker answers at .*(invalid response|too old|closed)"):
            KafkaSource(address, connect_limit_seconds=0.2)
        assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
    finally:
        tracemalloc.stop()
