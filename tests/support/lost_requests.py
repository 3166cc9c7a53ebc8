"""A proxy on 127.0.0.1 that loses some requests of Kafka's protocol: their clients wait for the answer until they time out.

Nothing passes on the connection of a lost request any more, as on one whose packets are dropped: clients open another one.
"""

import random
import socket
import struct
from collections.abc import Iterable

from relays import Relays, read, write


class LostRequests:
    """Listeners for (listening port, port of the server) pairs. A context manager.

    `share` of the requests are lost, drawn with a seed; `passed` and `lost` count them.
    """

    def __init__(self, ports: Iterable[tuple[int, int]], share: float, seed: int) -> None:
        self.share = share
        self.passed, self.lost = 0, 0
        self._ports = tuple(ports)
        self._draw = random.Random(seed)
        self._relays = Relays("lost-requests")

    def __enter__(self) -> "LostRequests":
        self._relays.__enter__()
        for port, target in self._ports:
            self._relays.listen(port, target, self._requests)
        return self

    def __exit__(self, *_: object) -> None:
        self._relays.__exit__()

    async def _requests(self, client: socket.socket, server: socket.socket) -> None:
        """Pass requests on until the client closes the connection, but nothing from the first lost one on."""
        is_lost, received = False, b""
        while data := await read(client):
            received += data
            while (request := _first_request(received)) is not None:
                received = received[len(request) :]
                if not is_lost and self._draw.random() < self.share:
                    is_lost = True
                    self.lost += 1
                if not is_lost:
                    self.passed += 1
                    await write(server, request)


def _first_request(received: bytes) -> bytes | None:
    """The first request with its size, if all of it has been received."""
    if len(received) < 4:
        return None
    end = 4 + struct.unpack_from(">i", received)[0]
    return received[:end] if len(received) >= end else None
