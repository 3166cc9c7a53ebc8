"""One client connection: requests are read and answered in order, one at a time.

While a request is parked in purgatory, as a JoinGroup may be for minutes, later requests of the connection wait, as with a
broker's muted channel. A client therefore occupies at most one request in progress, a bounded number of bytes read after it, and
its unread responses. A connection handles one request per turn of the event loop: a client that sends thousands of requests at
once waits for the others between any two of them.
"""

import asyncio
from typing import Protocol, cast

from coordinator_core.service.net.addresses import java_host
from coordinator_core.service.net.request_dispatcher import RequestDispatcher
from coordinator_core.service.settings import ServiceSettings
from coordinator_core.wire import Buffers, is_decoded_within, may_be_large

_SIZE_BYTES = 4
_API_KEY_BYTES = 2
#: Approximate number of bytes that are read ahead while a request is in progress.
_READ_AHEAD_BYTES = 64 * 1024
#: From here on, the buffers of a response are not copied into one.
_LARGE_RESPONSE_BYTES = 64 * 1024


class ConnectionOwner(Protocol):
    """The listener as its connections see it: limits across all connections, and the dispatcher."""

    @property
    def settings(self) -> ServiceSettings:
        """Return the settings, which have the limits."""

    @property
    def dispatcher(self) -> RequestDispatcher:
        """Return the dispatcher of requests."""

    def now(self) -> float:
        """Return the event loop's clock, in seconds."""

    def admit(self, connection: "Connection") -> bool:
        """Register the connection; False when a limit is reached."""

    def gone(self, connection: "Connection", reason: str | None) -> None:
        """Unregister a closed connection; `reason` is None when the client closed it."""

    def hold(self, count: int) -> None:
        """Add to the number of request bytes that are not answered."""

    def release(self, count: int) -> None:
        """Subtract from the number of request bytes that are not answered."""


class Connection(asyncio.Protocol):
    """The asyncio protocol of one connection, created by the listener."""

    def __init__(self, listener: ConnectionOwner) -> None:
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._busy = False
        self._handling = False
        #: The turn in which the next buffered request is handled, None if none is scheduled.
        self._next_turn: asyncio.Handle | None = None
        self._reading = True
        self._writable = True
        self._ended = False
        self._draining = False
        self._reason: str | None = None
        self._bytes_in_progress = 0
        self.host = ""
        self.client = ""
        #: Time of the last byte read or written, in seconds of the event loop's clock.
        self.active_at = 0.0

    # ---- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register with the listener, or close the connection when a limit is reached."""
        self._transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("peername") or ("", 0)
        self.host, self.client = str(name[0]), f"{name[0]}:{name[1]}"
        self.active_at = self._listener.now()
        self._transport.set_write_buffer_limits(high=self._listener.settings.write_buffer_bytes)
        if self._listener.admit(self):
            self._peer = self._listener.dispatcher.peer(java_host(self.host))
        else:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the way in which a client disconnects is irrelevant
        """Unregister; the response of a request in progress will be discarded."""
        self._forget_requests()
        self._listener.gone(self, self._reason)
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Buffer the bytes, which may be part of a frame or several frames, and handle the first complete one."""
        self.active_at = self._listener.now()
        self._buffer += data
        self._listener.hold(len(data))
        self._handle_frames()

    def eof_received(self) -> bool:
        """Close after the requests received so far are answered."""
        self._ended = True
        self._handle_frames()
        return True

    def pause_writing(self) -> None:
        """Hold the next request back until the client reads its responses."""
        self._writable = False

    def resume_writing(self) -> None:
        """Continue with the next request."""
        self._writable = True
        self._handle_frames()

    # ---- called by the listener

    @property
    def held_bytes(self) -> int:
        """Number of bytes received and not yet answered."""
        return len(self._buffer) + self._bytes_in_progress

    def is_idle_since(self, seconds: float) -> bool:
        """Whether there was no traffic since that time and no request is in progress, except for unread responses."""
        return self.active_at < seconds and (not self._busy or not self._writable)

    def drain(self) -> None:
        """Close once the request in progress is answered."""
        self._draining = True
        if not self._busy:
            self._close()

    def end(self, reason: str) -> None:
        """Close without waiting for responses; `reason` is logged."""
        if self._transport is not None and self._reason is None:
            self._reason = reason
            self._forget_requests()
            self._transport.abort()

    # ---- frames

    def _handle_frames(self) -> None:
        """Handle one frame, and further ones in later turns of the event loop, unless that is under way already."""
        if self._handling or self._next_turn is not None:
            self._set_reading()
            return
        self._handling = True
        try:
            if self._may_handle() and (frame := self._next_frame()) is not None:
                self._busy = True
                self._listener.dispatcher.handle(frame, self._peer, self._reply)
                if self._buffer and self._may_handle():
                    self._schedule_next()
        finally:
            self._handling = False
        self._set_reading()
        if self._ended and not self._busy and self._writable and self._next_turn is None:
            self._close()

    def _schedule_next(self) -> None:
        if self._next_turn is None:
            self._next_turn = asyncio.get_running_loop().call_soon(self._handle_next)

    def _handle_next(self) -> None:
        self._next_turn = None
        self._handle_frames()

    def _may_handle(self) -> bool:
        return not self._busy and self._writable and not self._draining and self._reason is None and self._transport is not None

    def _next_frame(self) -> bytes | None:
        buffer = self._buffer
        if len(buffer) < _SIZE_BYTES:
            return None
        size = int.from_bytes(buffer[:_SIZE_BYTES], signed=True)
        highest = self._listener.settings.socket_request_max_bytes
        if not 0 <= size <= highest:
            self.end(f"request of {size} bytes exceeds socket.request.max.bytes, which is {highest}")
            return None
        end = _SIZE_BYTES + size
        decoded = self._listener.settings.decoded_request_max_bytes
        is_large = size > decoded and len(buffer) >= _SIZE_BYTES + _API_KEY_BYTES
        if is_large and not may_be_large(buffer[_SIZE_BYTES : _SIZE_BYTES + _API_KEY_BYTES]):
            self.end(f"request of {size} bytes exceeds decoded_request_max_bytes, which is {decoded}, and is not Produce")
            return None
        if len(buffer) < end:
            return None
        frame = bytes(memoryview(buffer)[_SIZE_BYTES:end])
        if is_large and not is_decoded_within(frame, decoded):
            self.end(f"request of {size} bytes exceeds decoded_request_max_bytes, which is {decoded}, without its records")
            return None
        del buffer[:end]
        # still held: released with the reply
        self._bytes_in_progress = end
        return frame

    def _reply(self, frame: Buffers | None, problem: str | None) -> None:
        transport, self._busy = self._transport, False
        self._listener.release(self._bytes_in_progress)
        self._bytes_in_progress = 0
        if transport is None:
            return
        if problem is not None:
            self.end(problem)
            return
        self.active_at = self._listener.now()
        if frame is not None:
            size = sum(map(len, frame))
            buffers = (size.to_bytes(_SIZE_BYTES), *frame)
            if size < _LARGE_RESPONSE_BYTES:
                transport.write(b"".join(buffers))
            else:
                transport.writelines(buffers)
        if self._draining:
            self._close()
        elif not self._handling and (self._buffer or self._ended or not self._reading):
            self._schedule_next()

    def _set_reading(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        is_waiting = self._busy or not self._writable or self._next_turn is not None
        wanted = not (is_waiting and len(self._buffer) > _READ_AHEAD_BYTES)
        if wanted is not self._reading:
            self._reading = wanted
            (transport.resume_reading if wanted else transport.pause_reading)()

    def _forget_requests(self) -> None:
        self._listener.release(self.held_bytes)
        self._buffer.clear()
        self._bytes_in_progress = 0
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None

    def _close(self) -> None:
        """Close the transport, which still sends the responses already written."""
        if self._transport is not None:
            self._transport.close()
