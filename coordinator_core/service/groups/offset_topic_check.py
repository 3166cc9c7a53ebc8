"""Commits and deletions of offsets: partitions that do not exist get UNKNOWN_TOPIC_OR_PARTITION, and reach no group.

Brokers check this before the group coordinator (`KafkaApis.handleOffsetCommitRequest`). A commit without an existing partition is
answered at once, whatever its group. A number that no topic can have is never stored: readers of the offsets topic take the
highest number of a topic for its number of partitions.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.behaviour import Behaviour
from coordinator_core.protocol.api import Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    TxnOffsetCommitRequest,
)
from coordinator_core.segment_log.topics_file import MOST_PARTITIONS
from coordinator_core.service.runtime.reply_handles import ReplyHandle
from coordinator_core.service.topics.topic_registry import TopicRegistry

CheckedRequest = OffsetCommitRequest | TxnOffsetCommitRequest | OffsetDeleteRequest
Submit = Callable[[CheckedRequest, ReplyHandle], None]


class OffsetTopicCheck:
    """Passes the existing partitions of a request on, and adds the errors of the others to the response.

    A node that has never had a topic does not know those of its clients: it passes on commits for every partition that a topic
    can have, and all deletions, so that offsets of impossible partitions in an older log can be deleted. Brokers up to 2.0 look
    for the topic only, not for its partition.
    """

    def __init__(self, topics: TopicRegistry, behaviour: Behaviour) -> None:
        self._topics = topics
        self._behaviour = behaviour

    def submit(self, request: CheckedRequest, reply_handle: ReplyHandle, submit: Submit) -> None:
        """Submit the request without partitions that do not exist; the reply handle gets one response."""
        partitions: Collection[TopicPartition]
        partitions = request.partitions if isinstance(request, OffsetDeleteRequest) else request.offsets
        is_delete = isinstance(request, OffsetDeleteRequest)
        if is_delete and not self._topics.has_topics:
            submit(request, reply_handle)
            return
        exists = self._exists()
        missing = [partition for partition in partitions if not exists(partition.topic, partition.partition)]
        if not missing and (partitions or is_delete):
            submit(request, reply_handle)
        elif len(missing) == len(partitions) and not is_delete:
            reply_handle.answer(OffsetCommitResponse(dict.fromkeys(partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
        elif self._is_refused(request):
            submit(request, reply_handle)
        else:
            submit(_without(request, frozenset(missing)), _MergedReply(missing, reply_handle))

    def _exists(self) -> Callable[[str, int], bool]:
        if not self._topics.has_topics:
            return _may_exist
        return self._topics.has_partition if self._behaviour.commits_check_partitions else self._has_topic

    def _is_refused(self, request: CheckedRequest) -> bool:
        """Whether the coordinator refuses the request as a whole: brokers give this error also to missing partitions."""
        return isinstance(request, OffsetCommitRequest) and request.in_zookeeper and not self._behaviour.has_zookeeper

    def _has_topic(self, name: str, partition: int) -> bool:
        return self._topics.find(name) is not None and _may_exist(name, partition)


def _may_exist(_name: str, partition: int) -> bool:
    return 0 <= partition < MOST_PARTITIONS


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
