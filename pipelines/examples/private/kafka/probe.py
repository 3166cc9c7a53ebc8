"""Readiness probes of a broker, with a minimal request of the Kafka protocol and no client library."""

import socket
import struct

from pipelines.examples.private.kafka.configuration import HOST

_METADATA, _VERSION = 3, 1
_CLIENT_ID = b"probe"


def listens(port: int) -> bool:
    """Whether a server accepts connections on this port of 127.0.0.1."""
    try:
        with socket.create_connection((HOST, port), 1):
            return True
    except OSError:
        return False


def has_brokers(port: int) -> bool:
    """Whether the broker on `port` answers Metadata (v1, no topics) with at least one broker, itself."""
    body = struct.pack(">hhih", _METADATA, _VERSION, 1, len(_CLIENT_ID)) + _CLIENT_ID + struct.pack(">i", 0)
    try:
        with socket.create_connection((HOST, port), 1) as connection:
            connection.settimeout(5)
            connection.sendall(struct.pack(">i", len(body)) + body)
            with connection.makefile("rb") as answer:
                head = answer.read(12)
    except OSError:
        return False
    # size, correlation id, number of brokers
    return len(head) == 12 and struct.unpack(">iii", head)[2] > 0
