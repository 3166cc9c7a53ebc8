"""One TCP connection to a broker (`NetworkClient`, for one node)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from coordinator_core.client.errors import ClientError, Disconnected, NoCommonVersion, TimedOut
from coordinator_core.client.settings import ConnectionSettings
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.messages.versions import ApiKey
from coordinator_core.wire import (
    SERVED,
    AnyApiKey,
    ClusterApiKey,
    Part,
    PartResponse,
    WireError,
    correlation_id_of,
    read_response,
    write_request,
)
from coordinator_core.wire.cluster_messages import ApiVersionsRequest, ApiVersionsResponse

_LENGTH_BYTES = 4
_NEWEST_API_VERSIONS = SERVED[ClusterApiKey.API_VERSIONS][1].highest
_SOFTWARE = ApiVersionsRequest("grouplake", "0.1.0")
#: Versions from which topics have ids instead of names, which members do not know.
_BY_TOPIC_ID: Mapping[AnyApiKey, int] = {ApiKey.OFFSET_COMMIT: 10, ApiKey.OFFSET_FETCH: 10}

Responses = tuple[PartResponse, ...]


@dataclass(frozen=True, slots=True)
class _Waiting:
    api: AnyApiKey
    version: int
    answer: "asyncio.Future[Responses]"
    timeout: asyncio.TimerHandle


class BrokerConnection(asyncio.Protocol):
    """Requests leave in the order in which they are sent, as many as the caller likes; answers are matched to them by number.

    Made by `connect`. When anything goes wrong the connection is closed, and every request on its way fails with what it was.
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
        """Nothing can be sent any more."""
        return self._ended is not None

    def version_of(self, api: AnyApiKey, newest: int | None = None) -> int:
        """The newest version that both sides speak; `newest` is the last that an older client would. Raises NoCommonVersion."""
        spoken, offered = SERVED[api][1], self._versions.get(api)
        highest = min(spoken.highest, _BY_TOPIC_ID.get(api, spoken.highest + 1) - 1)
        if newest is not None:
            highest = min(highest, newest)
        if offered is None or not max(spoken.lowest, offered.start) <= min(highest, offered.stop - 1):
            theirs = "none" if offered is None else f"{offered.start}–{offered.stop - 1}"
            raise NoCommonVersion(f"{api.name}: the broker has {theirs}, {spoken.lowest}–{highest} are spoken here")
        return min(highest, offered.stop - 1)

    def send(self, api: AnyApiKey, parts: Sequence[Part], timeout_ms: int | None = None) -> "asyncio.Future[Responses]":
        """Sends a request; the future has the answers to its parts, or a ClientError. Raises NoCommonVersion, and Unwritable for
        what the common version has no room for."""
        return self._send(api, self.version_of(api), parts, timeout_ms)

    async def ask(self, api: AnyApiKey, part: Part, timeout_ms: int | None = None, newest: int | None = None) -> PartResponse:
        """Sends a request with one part and waits for its answer; `newest` as in `version_of`. Raises ClientError."""
        return (await self._send(api, self.version_of(api, newest), (part,), timeout_ms))[0]

    def close(self) -> None:
        """Hangs up at once."""
        self._end(Disconnected("the connection was closed on this side"))

    async def learn_versions(self) -> None:
        """Asks which versions the broker speaks, in the oldest way if it does not know the newest. Raises ClientError."""
        for version in (_NEWEST_API_VERSIONS, 0):
            answers = await self._send(ClusterApiKey.API_VERSIONS, version, (_SOFTWARE,), None)
            told = cast(ApiVersionsResponse, answers[0])
            self._versions = {each.api_key: range(each.lowest, each.highest + 1) for each in told.apis}
            if told.error is ErrorCode.NONE:
                return
        raise NoCommonVersion(f"ApiVersions was answered {told.error.name}")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Of asyncio."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Of asyncio."""
        self._end(Disconnected("the broker closed the connection" if exc is None else f"the connection broke: {exc}"))

    def data_received(self, data: bytes) -> None:
        """Of asyncio."""
        received = self._received
        received += data
        at = 0
        while len(received) - at >= _LENGTH_BYTES and not self.closed:
            size = int.from_bytes(received[at : at + _LENGTH_BYTES], "big", signed=True)
            if not _LENGTH_BYTES <= size <= self._settings.max_frame_bytes:
                self._end(Disconnected(f"a frame of {size} bytes is not in {_LENGTH_BYTES}–{self._settings.max_frame_bytes}"))
                return
            end = at + _LENGTH_BYTES + size
            if len(received) < end:
                break
            self._take(bytes(received[at + _LENGTH_BYTES : end]))
            at = end
        del received[:at]

    def _send(self, api: AnyApiKey, version: int, parts: Sequence[Part], timeout_ms: int | None) -> "asyncio.Future[Responses]":
        answer: asyncio.Future[Responses] = self._loop.create_future()
        if self._ended is not None or self._transport is None:
            answer.set_exception(self._ended or Disconnected("the connection was never made"))
            return answer
        number = self._next_id
        self._next_id = (number + 1) & 0x7FFFFFFF
        frame = write_request(api, version, parts, number, self._settings.client_id)
        patience = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        timeout = self._loop.call_later(patience / 1000, self._give_up, api, patience)
        self._waiting[number] = _Waiting(api, version, answer, timeout)
        self._transport.write(len(frame).to_bytes(_LENGTH_BYTES, "big") + frame)
        return answer

    def _take(self, frame: bytes) -> None:
        waiting = self._waiting.pop(correlation_id_of(frame), None)
        if waiting is None:
            self._end(Disconnected(f"nobody waits for answer {correlation_id_of(frame)}"))
            return
        waiting.timeout.cancel()
        try:
            response = read_response(waiting.api, waiting.version, frame)
        except WireError as error:
            failure = Disconnected(f"the answer to {waiting.api.name} cannot be read: {error}")
            _fail(waiting.answer, failure)
            self._end(failure)
            return
        if not waiting.answer.done():
            waiting.answer.set_result(response.parts)

    def _give_up(self, api: AnyApiKey, patience_ms: int) -> None:
        self._end(TimedOut(f"{api.name} was not answered within {patience_ms} ms"))

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
        # whoever went away does not have to hear of it
        answer.exception()


async def connect(host: str, port: int, settings: ConnectionSettings) -> BrokerConnection:
    """A connection that knows the broker's versions. Raises ClientError."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(settings.connect_timeout_ms / 1000):
            _, connection = await loop.create_connection(lambda: BrokerConnection(settings), host, port)
    except TimeoutError:
        raise TimedOut(f"{host}:{port} did not answer within {settings.connect_timeout_ms} ms") from None
    except OSError as error:
        raise Disconnected(f"{host}:{port}: {error}") from None
    try:
        await connection.learn_versions()
    except BaseException:
        connection.close()
        raise
    return connection
