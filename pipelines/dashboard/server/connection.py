"""A connection of the server with a limit of time for each request, so that slow clients do not keep connections open."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: Time from the first byte of a request, or from the start of the connection, until the request has arrived.
REQUEST_SECONDS = 10.0


class TimedConnection(H11Protocol):
    """Closes the connection of a request that does not arrive within REQUEST_SECONDS.

    uvicorn limits the time between two requests only: a client that sends a header byte by byte keeps its connection for ever.
    Requests have no body, so header and body have one limit. Responses, such as streams of events, have none.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the time of the first request."""
        super().connection_made(transport)
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """Start the time with the first byte of a request, and end it with the last one. Further bytes do not extend it."""
        super().data_received(data)
        is_incomplete = self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing()
        if not is_incomplete:
            self._unset_deadline()
        elif self._deadline is None:
            self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the time."""
        self._unset_deadline()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        # a closed connection of TLS would wait for the client again
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _unset_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
