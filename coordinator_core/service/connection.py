"""One connection: frames in, answers out, in order and one at a time.

A request that is parked, as a JoinGroup may be for minutes, keeps what comes behind it from being looked at, as a broker's muted
channel does. So a client costs at most its next bytes, one request that is under way, and the answers that it does not take.
"""

import asyncio
from typing import Protocol, cast

from coordinator_core.service.addresses import java_host
from coordinator_core.service.request_dispatcher import RequestDispatcher
from coordinator_core.service.settings import ServiceSettings

_SIZE_BYTES = 4
#: While a request is under way, no more than about this is read of what is behind it.
_READ_AHEAD_BYTES = 64 * 1024


class ConnectionOwner(Protocol):
    """What a connection asks of the listener that made it: the limits of all together, and who answers."""

    @property
    def settings(self) -> ServiceSettings:
        """The limits."""

    @property
    def dispatcher(self) -> RequestDispatcher:
        """Who answers requests."""

    def now(self) -> float:
        """Seconds of the event loop's clock."""

    def admit(self, connection: "Connection") -> bool:
        """Is there room for one more?"""

    def gone(self, connection: "Connection", reason: str | None) -> None:
        """It is closed."""

    def hold(self, count: int) -> None:
        """So many bytes of requests came."""

    def release(self, count: int) -> None:
        """So many are not held any more."""


class Connection(asyncio.Protocol):
    """Made by its listener, which has the limits and knows when to give up."""

    def __init__(self, listener: ConnectionOwner) -> None:
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._busy = False
        self._handling = False
        self._reading = True
        self._writable = True
        self._ended = False
        self._draining = False
        self._reason: str | None = None
        self.host = ""
        self.client = ""
        #: When something last came in or went out, in seconds of the event loop's clock.
        self.active_at = 0.0

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes the connection, or hangs up."""
        self._transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("peername") or ("", 0)
        self.host, self.client = str(name[0]), f"{name[0]}:{name[1]}"
        self.active_at = self._listener.now()
        self._transport.set_write_buffer_limits(high=self._listener.settings.write_buffer_bytes)
        if self._listener.admit(self):
            self._peer = self._listener.dispatcher.peer(java_host(self.host))
        else:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - which way a client goes makes no difference
        """An answer that is still to come has nobody to go to."""
        self._forget_buffer()
        self._listener.gone(self, self._reason)
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Any part of a frame, or many."""
        self.active_at = self._listener.now()
        self._buffer += data
        self._listener.hold(len(data))
        self._handle_frames()

    def eof_received(self) -> bool:
        """The client sends no more; what it sent is answered first."""
        self._ended = True
        self._handle_frames()
        return True

    def pause_writing(self) -> None:
        """The client does not take its answers: its next request waits."""
        self._writable = False

    def resume_writing(self) -> None:
        """It does again."""
        self._writable = True
        self._handle_frames()

    # ---- what the listener calls

    @property
    def held_bytes(self) -> int:
        """What came and was not looked at yet."""
        return len(self._buffer)

    def is_idle_since(self, seconds: float) -> bool:
        """Nothing came or went since then, and nothing is under way but answers that nobody takes."""
        return self.active_at < seconds and (not self._busy or not self._writable)

    def drain(self) -> None:
        """Closes once the request that is under way is answered."""
        self._draining = True
        if not self._busy:
            self._close()

    def end(self, reason: str) -> None:
        """Closes at once; `reason` is told in one line."""
        if self._transport is not None and self._reason is None:
            self._reason = reason
            self._forget_buffer()
            self._transport.abort()

    # ---- frames

    def _handle_frames(self) -> None:
        if self._handling:
            return
        self._handling = True
        try:
            while self._may_handle() and (frame := self._next_frame()) is not None:
                self._busy = True
                self._listener.dispatcher.handle(frame, self._peer, self._reply)
        finally:
            self._handling = False
        self._set_reading()
        if self._ended and not self._busy and self._writable:
            self._close()

    def _may_handle(self) -> bool:
        return not self._busy and self._writable and not self._draining and self._reason is None and self._transport is not None

    def _next_frame(self) -> bytes | None:
        buffer = self._buffer
        if len(buffer) < _SIZE_BYTES:
            return None
        size = int.from_bytes(buffer[:_SIZE_BYTES], signed=True)
        highest = self._listener.settings.socket_request_max_bytes
        if not 0 <= size <= highest:
            self.end(f"a frame of {size} bytes; socket.request.max.bytes is {highest}")
            return None
        end = _SIZE_BYTES + size
        if len(buffer) < end:
            return None
        frame = bytes(memoryview(buffer)[_SIZE_BYTES:end])
        del buffer[:end]
        self._listener.release(end)
        return frame

    def _reply(self, data: bytes | None, problem: str | None) -> None:
        transport, self._busy = self._transport, False
        if transport is None:
            return
        if problem is not None:
            self.end(problem)
            return
        self.active_at = self._listener.now()
        if data is not None:
            transport.write(len(data).to_bytes(_SIZE_BYTES) + data)
        if self._draining:
            self._close()
        elif self._buffer or self._ended or not self._reading:
            self._handle_frames()

    def _set_reading(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        wanted = not ((self._busy or not self._writable) and len(self._buffer) > _READ_AHEAD_BYTES)
        if wanted is not self._reading:
            self._reading = wanted
            (transport.resume_reading if wanted else transport.pause_reading)()

    def _forget_buffer(self) -> None:
        self._listener.release(len(self._buffer))
        self._buffer.clear()

    def _close(self) -> None:
        """What was written still goes out."""
        if self._transport is not None:
            self._transport.close()
