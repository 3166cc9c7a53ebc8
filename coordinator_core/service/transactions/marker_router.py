"""Delivery of transaction markers to the partitions of this node, from the wire and from the transaction coordinator."""

from collections.abc import Callable, Mapping

from coordinator_core.protocol.api import Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC
from coordinator_core.protocol.offsets import TxnMarkerRequest, TxnMarkerResponse
from coordinator_core.protocol.transactions import NO_PRODUCER
from coordinator_core.service.runtime.reply_handles import ReplyHandle
from coordinator_core.wire import PartitionMarker

#: Writes a marker to a partition: the reply handle gets one TxnMarkerResponse, once the marker is in the log or refused.
MarkerWriter = Callable[[PartitionMarker, ReplyHandle], None]
#: Writes a marker to a partition of `__consumer_offsets` (`GroupCoordinatorService.end_transaction`).
OffsetsMarkerWriter = Callable[[int, TxnMarkerRequest, ReplyHandle], None]

#: Errors of a group coordinator that the sender of markers would not retry (`KafkaApis.handleWriteTxnMarkersRequest`).
_SENT_AS: Mapping[ErrorCode, ErrorCode] = dict.fromkeys(
    (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR),
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)


class MarkerRouter:
    """Routes markers by topic: those of `__consumer_offsets` end pending commits, `write_data` takes those of other topics.

    A topic of this node that holds no data needs no marker: its partitions answer UNSUPPORTED_FOR_MESSAGE_FORMAT, which ends the
    sending. Without `write_data`, no topic holds data. `has_partition` is true for the partitions of this node.
    """

    def __init__(
        self,
        write_offsets: OffsetsMarkerWriter,
        has_partition: Callable[[str, int], bool],
        write_data: MarkerWriter | None = None,
    ) -> None:
        self._write_offsets = write_offsets
        self._has_partition = has_partition
        self._write_data = write_data

    def write(self, part: PartitionMarker, reply_handle: ReplyHandle) -> None:
        """Write a marker; the reply handle gets a TxnMarkerResponse."""
        producer = part.marker.producer
        if not self._has_partition(part.topic, part.partition):
            reply_handle.answer(TxnMarkerResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif producer.producer_id == NO_PRODUCER.producer_id or producer.producer_epoch == NO_PRODUCER.producer_epoch:
            # no record can express such a marker, and brokers do not check for it
            reply_handle.answer(TxnMarkerResponse(ErrorCode.UNKNOWN_SERVER_ERROR))
        elif part.topic == OFFSETS_TOPIC:
            self._write_offsets(part.partition, part.marker, _OffsetsReply(reply_handle))
        elif self._write_data is not None:
            self._write_data(part, reply_handle)
        else:
            reply_handle.answer(TxnMarkerResponse(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT))


class _OffsetsReply:
    """Translates the errors of a group coordinator for the sender of the marker."""

    __slots__ = ("_reply_handle",)

    def __init__(self, reply_handle: ReplyHandle) -> None:
        self._reply_handle = reply_handle

    def answer(self, response: Response) -> None:
        """Receive the response of the group coordinator."""
        assert isinstance(response, TxnMarkerResponse)
        self._reply_handle.answer(TxnMarkerResponse(_SENT_AS.get(response.error, response.error)))
