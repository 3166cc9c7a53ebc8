"""Dispatch of requests, shared by all connections: decode a frame, route its parts, encode the response."""

from collections.abc import Callable, Sequence
from time import perf_counter

from coordinator_core.protocol.api import AnyApi, CoordinatorRequest, Response, TransactionRequest
from coordinator_core.protocol.apis import APIS, served_versions
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import TxnOffsetCommitRequest
from coordinator_core.service.groups.group_service import GroupCoordinatorService
from coordinator_core.service.groups.offset_commit_verification import OffsetCommitVerification
from coordinator_core.service.groups.offset_topic_check import CheckedRequest, OffsetTopicCheck
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.service.runtime.reply_handles import GatheredReplies, ReplyHandle
from coordinator_core.service.topics.cluster import ClusterResponses
from coordinator_core.service.topics.topic_service import HANDLERS as TOPIC_HANDLERS
from coordinator_core.service.topics.topic_service import TopicService
from coordinator_core.service.transactions.marker_router import MarkerRouter
from coordinator_core.service.transactions.transaction_service import TransactionService
from coordinator_core.wire import (
    Buffers,
    Part,
    PartitionMarker,
    Peer,
    RequestHeader,
    UnsupportedVersion,
    WireError,
    WireRequest,
    read_request,
    write_error_response,
    write_response,
)

#: Receives the frame of a response; None and a reason to close the connection; None twice for a request without response.
Reply = Callable[[Buffers | None, str | None], None]


class RequestDispatcher:
    """Answers frames: one call of the reply per frame, in the event loop, before or after `handle` returns.

    `transactions` is None in eras without transactions, whose `offered` versions have no request of them.
    """

    def __init__(
        self,
        service: GroupCoordinatorService,
        cluster: ClusterResponses,
        topics: TopicService,
        observer: Observer,
        markers: MarkerRouter,
        transactions: TransactionService | None,
    ) -> None:
        self._service = service
        self._cluster = cluster
        self._topics = topics
        self._observer = observer
        self._markers = markers
        self._transactions = transactions
        served = served_versions(service.config.era)
        self._served = {number: served[number] for number in cluster.offered}
        self._topic_check = OffsetTopicCheck(topics.topics, service.config.behaviour)
        self._offset_commits = None if transactions is None else OffsetCommitVerification(service, transactions)

    def peer(self, client_host: str) -> Peer:
        """Return the context of requests of this client: its host and the topic names."""
        return Peer(client_host, self._cluster.topic_names)

    def handle(self, frame: bytes, peer: Peer, reply: Reply) -> None:
        """Handle one request; `frame` has no length prefix."""
        started = perf_counter()
        try:
            request = read_request(frame, peer, self._served)
        except UnsupportedVersion as error:
            response = None if error.header is None else self._error_response(error.header)
            reply((response,) if response else None, None if response else str(error))
            return
        except WireError as error:
            reply(None, str(error))
            return
        PendingRequest(self, request, started, reply).begin()

    def _error_response(self, header: RequestHeader) -> bytes | None:
        return write_error_response(header, ErrorCode.UNSUPPORTED_VERSION, self._cluster.offered)

    def dispatch(self, part: Part, reply_handle: ReplyHandle) -> None:
        """Pass one part of a request to the cluster, to the topics or to a coordinator."""
        if isinstance(part, CheckedRequest):
            self._topic_check.submit(part, reply_handle, self._submit_offsets)
        elif isinstance(part, CoordinatorRequest):
            self._service.submit(part, reply_handle)
        elif isinstance(part, PartitionMarker):
            self._markers.write(part, reply_handle)
        elif isinstance(part, TransactionRequest):
            assert self._transactions is not None
            self._transactions.submit(part, reply_handle)
        elif type(part) in TOPIC_HANDLERS:
            self._topics.handle(part, reply_handle)
        else:
            reply_handle.answer(self._cluster.answer(part))

    def _submit_offsets(self, request: CheckedRequest, reply_handle: ReplyHandle) -> None:
        if isinstance(request, TxnOffsetCommitRequest) and self._offset_commits is not None:
            self._offset_commits.submit(request, reply_handle)
        else:
            self._service.submit(request, reply_handle)

    def write(self, request: WireRequest, responses: Sequence[Response], started: float, reply: Reply) -> None:
        """Encode the response from the responses to all parts."""
        frame = None
        if request.has_response:
            try:
                frame = write_response(request, responses)
            except WireError as error:
                reply(None, f"the response cannot be encoded: {error}")
                return
        api = APIS[request.header.api_key]
        self._observer.answered(api.name, perf_counter() - started)
        errors = response_errors(api, responses)
        if errors:
            self._observer.errors(api.name, errors)
        if frame is None and errors:
            # closing the connection is the only way to report the error to the producer (`KafkaApis.handleProduceRequest`)
            reply(None, f"Produce with acks=0 failed: {', '.join(sorted(set(errors)))}")
        else:
            reply(frame, None)


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
            self._dispatcher.dispatch(parts[0], self)
        elif not parts:
            self._finish([])
        else:
            for part, reply_handle in zip(parts, GatheredReplies(len(parts), self._finish).handles(), strict=True):
                self._dispatcher.dispatch(part, reply_handle)

    def answer(self, response: Response) -> None:
        """Receive the response of the only part."""
        self._finish([response])

    def _finish(self, responses: list[Response]) -> None:
        self._dispatcher.write(self._request, responses, self._started, self._reply)


def response_errors(api: AnyApi, responses: Sequence[Response]) -> list[str]:
    """Return Kafka's names of all errors in the parts of a response, at every depth."""
    return [error.name for response in responses for error in api.errors(response) if error is not ErrorCode.NONE]
