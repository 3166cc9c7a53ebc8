"""Dispatch of requests, shared by all connections: decode a frame, route its parts, encode the response."""

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, get_args

from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.messages.groups import FindCoordinatorRequest
from coordinator_core.coordinator.messages.offsets import TxnMarkerResponse
from coordinator_core.service.cluster import OFFSETS_TOPIC, Cluster
from coordinator_core.service.observer import Observer
from coordinator_core.service.reply_handles import GatheredReplies, ReplyHandle
from coordinator_core.service.response_errors import response_errors
from coordinator_core.service.service import CoordinatorService
from coordinator_core.wire import (
    SERVED,
    Part,
    PartitionMarker,
    PartResponse,
    Peer,
    RequestHeader,
    UnsupportedVersion,
    WireError,
    WireRequest,
    read_request,
    write_refusal,
    write_response,
)
from coordinator_core.wire.cluster_messages import ClusterRequest, FetchRequest

if TYPE_CHECKING:
    from typing_extensions import TypeIs

#: Upper bound of `max_wait_ms` of a fetch, whose partitions are always empty.
_LONGEST_FETCH_MS = 5_000
_NAMES = {number: api.name for number, (api, _) in SERVED.items()}
_CLUSTER_PARTS = frozenset({*get_args(ClusterRequest), FindCoordinatorRequest})

#: Receives the bytes of a response; None and a reason to close the connection; None twice for a request without response.
Reply = Callable[[bytes | None, str | None], None]


class RequestDispatcher:
    """Answers frames: one call of the reply per frame, in the event loop, before or after `handle` returns."""

    def __init__(self, service: CoordinatorService, cluster: Cluster, observer: Observer) -> None:
        self._service = service
        self._cluster = cluster
        self._observer = observer

    def peer(self, client_host: str) -> Peer:
        """Return the context of requests of this client: its host and the topic names."""
        return Peer(client_host, self._cluster.topic_names)

    def handle(self, frame: bytes, peer: Peer, reply: Reply) -> None:
        """Handle one request; `frame` has no length prefix."""
        started = perf_counter()
        try:
            request = read_request(frame, peer, self._cluster.offered)
        except UnsupportedVersion as error:
            refusal = None if error.header is None else self._refusal(error.header)
            reply(refusal, None if refusal else str(error))
            return
        except WireError as error:
            reply(None, str(error))
            return
        PendingRequest(self, request, started, reply).begin()

    def _refusal(self, header: RequestHeader) -> bytes | None:
        return write_refusal(header, ErrorCode.UNSUPPORTED_VERSION, self._cluster.offered)

    def ask(self, part: Part, reply_handle: ReplyHandle[PartResponse]) -> None:
        """Pass one part of a request to the cluster or to the service."""
        if _is_of_cluster(part):
            _answer_cluster(self._cluster, part, reply_handle)
        elif isinstance(part, PartitionMarker):
            self._end_transaction(part, reply_handle)
        else:
            self._service.ask(part, reply_handle)

    def _end_transaction(self, part: PartitionMarker, reply_handle: ReplyHandle[PartResponse]) -> None:
        if part.topic == OFFSETS_TOPIC:
            self._service.end_transaction(part.partition, part.marker, reply_handle)
        else:
            reply_handle.answer(TxnMarkerResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

    def write(self, request: WireRequest, responses: Sequence[PartResponse], started: float, reply: Reply) -> None:
        """Encode the response from the responses to all parts."""
        data = None
        if request.has_response:
            try:
                data = write_response(request, responses)
            except WireError as error:
                reply(None, f"the response cannot be encoded: {error}")
                return
        self._observer.answered(_NAMES[request.header.api_key], perf_counter() - started)
        errors = response_errors(responses)
        if errors:
            self._observer.errors(errors)
        if data is None and errors:
            # closing the connection is the only way to report the error to the producer (`KafkaApis.handleProduceRequest`)
            reply(None, f"Produce with acks=0 failed: {', '.join(sorted(set(errors)))}")
        else:
            reply(data, None)


class PendingRequest:
    """A request whose response is pending. It is also the reply handle of its part, if it has only one."""

    __slots__ = ("_dispatcher", "_reply", "_request", "_started")

    def __init__(self, dispatcher: RequestDispatcher, request: WireRequest, started: float, reply: Reply) -> None:
        self._dispatcher = dispatcher
        self._request = request
        self._started = started
        self._reply = reply

    def begin(self) -> None:
        """Dispatch every part."""
        parts = self._request.parts
        if len(parts) == 1:
            self._dispatcher.ask(parts[0], self)
        elif not parts:
            self._finish([])
        else:
            for part, reply_handle in zip(parts, GatheredReplies(len(parts), self._finish).tickets(), strict=True):
                self._dispatcher.ask(part, reply_handle)

    def answer(self, response: PartResponse) -> None:
        """Receive the response of the only part."""
        self._finish([response])

    def _finish(self, responses: list[PartResponse]) -> None:
        self._dispatcher.write(self._request, responses, self._started, self._reply)


def _is_of_cluster(part: Part) -> "TypeIs[ClusterRequest | FindCoordinatorRequest]":
    return type(part) in _CLUSTER_PARTS


def _answer_cluster(
    cluster: Cluster, part: ClusterRequest | FindCoordinatorRequest, reply_handle: ReplyHandle[PartResponse]
) -> None:
    response = cluster.answer(part)
    if isinstance(part, FetchRequest) and part.max_wait_ms > 0 and not response_errors([response]):
        wait = min(part.max_wait_ms, _LONGEST_FETCH_MS) / 1000
        asyncio.get_running_loop().call_later(wait, reply_handle.answer, response)
    else:
        reply_handle.answer(response)
