"""A broker that closes the connection during a TLS handshake is unavailable, not untrusted."""

import socket
import threading

import pytest

from coordinator_core.log.errors import AuthenticationFailed, LogUnreachable
from coordinator_core.sources.kafka import KafkaSource


def answering(server: socket.socket, answer: bytes) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.recv(4096)
            connection.sendall(answer)


def read_over_tls(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answering, args=(server, answer))
        thread.start()
        try:
            KafkaSource(f"kafka://127.0.0.1:{server.getsockname()[1]}/t", {"security_protocol": "SSL"}, connect_limit_seconds=0.2)
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_hanging_up_is_an_outage() -> None:
    with pytest.raises(
        LogUnreachable, match=r"closed the connection during the TLS handshake \(is security_protocol that of the listener"
    ):
        read_over_tls(b"")


def test_an_answer_that_is_no_tls_is_none() -> None:
    with pytest.raises(
        AuthenticationFailed, match=r"TLS handshake failed: .*check ssl_cafile, ssl_certfile and security_protocol"
    ):
        read_over_tls(b"HTTP/1.1 400 Bad Request\r\n\r\n")
