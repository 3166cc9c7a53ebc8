"""Commits and deletions of offsets: partitions that do not exist get UNKNOWN_TOPIC_OR_PARTITION, and reach no group.

Brokers check this before the group coordinator (`KafkaApis.handleOffsetCommitRequest`). A commit without an existing partition is
answered at once, whatever its group.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.api import Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    TxnOffsetCommitRequest,
)
from coordinator_core.service.runtime.reply_handles import ReplyHandle
from coordinator_core.service.topics.topic_registry import TopicRegistry

CheckedRequest = OffsetCommitRequest | TxnOffsetCommitRequest | OffsetDeleteRequest
Submit = Callable[[CheckedRequest, ReplyHandle], None]


class OffsetTopicCheck:
    """Passes the existing partitions of a request on, and adds the errors of the others to the response.

    A node that has never had a topic does not know those of its clients, and passes all partitions on. Brokers up to 2.0 look for
    the topic only, not for its partition: `needs_partition` is false in their eras.
    """

    def __init__(self, topics: TopicRegistry, *, needs_partition: bool) -> None:
        self._topics = topics
        self._exists = topics.has_partition if needs_partition else self._has_topic

    def submit(self, request: CheckedRequest, reply_handle: ReplyHandle, submit: Submit) -> None:
        """Submit the request without partitions that do not exist; the reply handle gets one response."""
        partitions: Collection[TopicPartition]
        partitions = request.partitions if isinstance(request, OffsetDeleteRequest) else request.offsets
        is_delete = isinstance(request, OffsetDeleteRequest)
        if partitions and not self._topics.has_topics:
            submit(request, reply_handle)
            return
        exists = self._exists
        missing = [partition for partition in partitions if not exists(partition.topic, partition.partition)]
        if not missing and (partitions or is_delete):
            submit(request, reply_handle)
        elif len(missing) == len(partitions) and not is_delete:
            reply_handle.answer(OffsetCommitResponse(dict.fromkeys(partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
        else:
            submit(_without(request, frozenset(missing)), _MergedReply(missing, reply_handle))

    def _has_topic(self, name: str, _partition: int) -> bool:
        return self._topics.find(name) is not None


def _without(request: CheckedRequest, missing: Collection[TopicPartition]) -> CheckedRequest:
    if isinstance(request, OffsetDeleteRequest):
        return replace(request, partitions=tuple(each for each in request.partitions if each not in missing))
    return replace(request, offsets={at: offset for at, offset in request.offsets.items() if at not in missing})


class _MergedReply:
    """Adds the errors of partitions that do not exist to the group coordinator's response."""

    __slots__ = ("_errors", "_reply_handle")

    def __init__(self, missing: Collection[TopicPartition], reply_handle: ReplyHandle) -> None:
        self._errors = dict.fromkeys(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._reply_handle = reply_handle

    def answer(self, response: Response) -> None:
        """Receive the response of the group coordinator. An error of a deletion as a whole replaces those of partitions."""
        assert isinstance(response, OffsetCommitResponse | OffsetDeleteResponse)
        if isinstance(response, OffsetCommitResponse) or response.error is ErrorCode.NONE:
            response = replace(response, errors={**self._errors, **response.errors})
        self._reply_handle.answer(response)
