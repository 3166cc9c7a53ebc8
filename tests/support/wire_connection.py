"""A client with one connection that exchanges bytes with a coordinator."""

import socket
from typing import Any

from client_codecs import read_response, write_request
from patience import PATIENCE_SECONDS

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetFetchRequest, OffsetToCommit
from coordinator_core.wire import Part

PLACE = TopicPartition("orders", 0)


class Wire:
    """One connection."""

    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE_SECONDS)
        self.socket.connect(("127.0.0.1", port))
        self._number = 0

    def frame(self, api: AnyApi, version: int, *parts: Part) -> bytes:
        """A request with its length prefix."""
        self._number += 1
        data = write_request(api, version, parts, self._number, "wire")
        return len(data).to_bytes(4) + data

    def send(self, api: AnyApi, version: int, *parts: Part) -> None:
        self.socket.sendall(self.frame(api, version, *parts))

    def receive(self) -> bytes:
        """The next frame; b"" after the connection has ended."""
        try:
            size = self._take(4)
            return self._take(int.from_bytes(size)) if size else b""
        except ConnectionError:
            return b""

    def _take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                return b""
            data += more
        return data

    def ask(self, api: AnyApi, version: int, *parts: Part) -> Any:
        """Send a request of one part; return its response."""
        self.send(api, version, *parts)
        frame = self.receive()
        if not frame:
            raise ConnectionError("the coordinator hung up")
        return read_response(api, version, frame).parts[0]

    def commit(self, offset: int, group: str = "g") -> Any:
        request = OffsetCommitRequest(group, {PLACE: OffsetToCommit(offset)})
        return self.ask(apis.OFFSET_COMMIT, 8, request).errors[PLACE]

    def committed(self, group: str = "g") -> int:
        response = self.ask(apis.OFFSET_FETCH, 8, OffsetFetchRequest(group, (PLACE,)))
        return int(response.offsets[PLACE].offset)

    def close(self) -> None:
        self.socket.close()
