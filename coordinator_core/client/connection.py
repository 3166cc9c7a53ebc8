"""One TCP connection to a broker (`NetworkClient`, for one node)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from coordinator_core.client.errors import ClientError, Disconnected, NoCommonVersion, TimedOut
from coordinator_core.client.settings import ConnectionSettings
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, Response
from coordinator_core.protocol.cluster import ApiVersionsRequest, ApiVersionsResponse
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.wire import (
    Part,
    WireError,
    correlation_id_of,
    read_response,
    write_request,
)

_LENGTH_BYTES = 4
_NEWEST_API_VERSIONS = apis.API_VERSIONS.versions.highest
_SOFTWARE = ApiVersionsRequest("grouplake", "0.1.0")
#: First versions with topic ids instead of names; members know only names.
_FIRST_WITH_TOPIC_IDS: Mapping[AnyApi, int] = {
    apis.OFFSET_COMMIT: apis.OFFSET_COMMIT.first_versions["topic_id"],
    apis.OFFSET_FETCH: apis.OFFSET_FETCH.first_versions["topic_ids"],
}

Responses = tuple[Response, ...]


@dataclass(frozen=True, slots=True)
class _Waiting:
    api: AnyApi
    version: int
    answer: "asyncio.Future[Responses]"
    timeout: asyncio.TimerHandle


class BrokerConnection(asyncio.Protocol):
    """A connection with any number of requests in flight; responses are matched to them by correlation id.

    Opened by `connect`. An error closes the connection, and every request in flight fails with this error.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._waiting: dict[int, _Waiting] = {}
        self._next_id = 0
        self._versions: Mapping[int, range] = {}
        self._ended: ClientError | None = None

    @property
    def closed(self) -> bool:
        """True if the connection cannot send any more."""
        return self._ended is not None

    def version_of(self, api: AnyApi, newest: int | None = None) -> int:
        """Returns the newest version that broker and client support, at most `newest` if given. Raises NoCommonVersion."""
        supported, offered = api.versions, self._versions.get(api.number)
        highest = min(supported.highest, _FIRST_WITH_TOPIC_IDS.get(api, supported.highest + 1) - 1)
        if newest is not None:
            highest = min(highest, newest)
        if offered is None or not max(supported.lowest, offered.start) <= min(highest, offered.stop - 1):
            brokers = "none" if offered is None else f"{offered.start}–{offered.stop - 1}"
            raise NoCommonVersion(
                f"no common version of {api.name}: the broker supports {brokers}, this client {supported.lowest}–{highest}"
            )
        return min(highest, offered.stop - 1)

    def send(self, api: AnyApi, parts: Sequence[Part], timeout_ms: int | None = None) -> "asyncio.Future[Responses]":
        """Sends a request; the future has the responses to its parts, or a ClientError.

        Raises NoCommonVersion, and Unwritable for values that the common version cannot hold.
        """
        return self._send(api, self.version_of(api), parts, timeout_ms)

    async def request(self, api: AnyApi, part: Part, timeout_ms: int | None = None, newest: int | None = None) -> Response:
        """Sends a request with one part and waits for its response; `newest` as in `version_of`. Raises ClientError."""
        return (await self._send(api, self.version_of(api, newest), (part,), timeout_ms))[0]

    def close(self) -> None:
        """Closes the connection without waiting for responses."""
        self._end(Disconnected("the client closed the connection"))

    async def learn_versions(self) -> None:
        """Requests the broker's versions with the newest ApiVersions, then with version 0. Raises ClientError."""
        for version in (_NEWEST_API_VERSIONS, 0):
            responses = await self._send(apis.API_VERSIONS, version, (_SOFTWARE,), None)
            response = cast(ApiVersionsResponse, responses[0])
            self._versions = {each.api_key: range(each.lowest, each.highest + 1) for each in response.apis}
            if response.error is ErrorCode.NONE:
                return
        raise NoCommonVersion(f"ApiVersions failed: {response.error.name}")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._end(Disconnected("the broker closed the connection" if exc is None else f"the connection broke: {exc}"))

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        received = self._received
        received += data
        at = 0
        while len(received) - at >= _LENGTH_BYTES and not self.closed:
            size = int.from_bytes(received[at : at + _LENGTH_BYTES], "big", signed=True)
            if not _LENGTH_BYTES <= size <= self._settings.max_frame_bytes:
                highest = self._settings.max_frame_bytes
                self._end(Disconnected(f"the broker sent a frame of {size} bytes: expected {_LENGTH_BYTES}–{highest}"))
                return
            end = at + _LENGTH_BYTES + size
            if len(received) < end:
                break
            self._take(bytes(received[at + _LENGTH_BYTES : end]))
            at = end
        del received[:at]

    def _send(self, api: AnyApi, version: int, parts: Sequence[Part], timeout_ms: int | None) -> "asyncio.Future[Responses]":
        answer: asyncio.Future[Responses] = self._loop.create_future()
        if self._ended is not None or self._transport is None:
            answer.set_exception(self._ended or Disconnected("the connection is not open"))
            return answer
        number = self._next_id
        self._next_id = (number + 1) & 0x7FFFFFFF
        frame = write_request(api, version, parts, number, self._settings.client_id, self._settings.codecs)
        wait_ms = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        timeout = self._loop.call_later(wait_ms / 1000, self._time_out, api, wait_ms)
        self._waiting[number] = _Waiting(api, version, answer, timeout)
        self._transport.write(len(frame).to_bytes(_LENGTH_BYTES, "big") + frame)
        return answer

    def _take(self, frame: bytes) -> None:
        waiting = self._waiting.pop(correlation_id_of(frame), None)
        if waiting is None:
            self._end(Disconnected(f"the broker sent a response with unknown correlation id {correlation_id_of(frame)}"))
            return
        waiting.timeout.cancel()
        try:
            response = read_response(waiting.api, waiting.version, frame, codecs=self._settings.codecs)
        except WireError as error:
            failure = Disconnected(f"cannot decode the response to {waiting.api.name}: {error}")
            _fail(waiting.answer, failure)
            self._end(failure)
            return
        if not waiting.answer.done():
            waiting.answer.set_result(response.parts)

    def _time_out(self, api: AnyApi, wait_ms: int) -> None:
        self._end(TimedOut(f"no response to {api.name} within {wait_ms} ms"))

    def _end(self, failure: ClientError) -> None:
        if self._ended is not None:
            return
        self._ended = failure
        if self._transport is not None:
            self._transport.abort()
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            each.timeout.cancel()
            _fail(each.answer, failure)


def _fail(answer: "asyncio.Future[Responses]", failure: ClientError) -> None:
    if not answer.done():
        answer.set_exception(failure)
        # marks the exception as retrieved: the caller may not wait for the response any more
        answer.exception()


async def connect(host: str, port: int, settings: ConnectionSettings) -> BrokerConnection:
    """Opens a connection and requests the broker's versions. Raises ClientError."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(settings.connect_timeout_ms / 1000):
            _, connection = await loop.create_connection(lambda: BrokerConnection(settings), host, port)
    except TimeoutError:
        raise TimedOut(f"no connection to {host}:{port} within {settings.connect_timeout_ms} ms") from None
    except OSError as error:
        raise Disconnected(f"{host}:{port}: {error}") from None
    try:
        await connection.learn_versions()
    except BaseException:
        connection.close()
        raise
    return connection
