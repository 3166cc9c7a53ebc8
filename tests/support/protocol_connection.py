"""One connection that speaks Kafka's protocol with kafka-python's messages, in versions of the test's choice."""

import socket
import struct
from typing import Any

from patience import PATIENCE_SECONDS


class ProtocolConnection:
    """For one thread. Responses arrive in the order of the requests. Close it, or use it in a `with`.

    Raises ConnectionError when the peer closes the connection.
    """

    def __init__(self, bootstrap: str, client_id: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._client_id = client_id
        self._socket = socket.create_connection((host, int(port)), PATIENCE_SECONDS)
        self._socket.settimeout(PATIENCE_SECONDS)
        self._answers = self._socket.makefile("rb")

    def __enter__(self) -> "ProtocolConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._answers.close()
        self._socket.close()

    def send(self, request: Any, version: int) -> None:
        """Send without waiting for the response."""
        request.API_VERSION = version
        request.with_header(0, self._client_id)
        self.send_bytes(request.encode(header=True))

    def receive(self, response: Any, version: int) -> Any:
        """The next response, read as a `response` of that version."""
        return response.decode(self.receive_bytes(), version=version, header=True)

    def request(self, request: Any, response: Any, version: int) -> Any:
        self.send(request, version)
        return self.receive(response, version)

    def send_bytes(self, frame: bytes) -> None:
        """Send a request with its header."""
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive_bytes(self) -> bytes:
        """A response with its header."""
        head = self._answers.read(4)
        if len(head) < 4:
            raise ConnectionError("the broker closed the connection")
        return self._answers.read(struct.unpack(">i", head)[0])
