"""OffsetDelete (`handleDeleteOffsets`, `OffsetMetadataManager.deleteOffsets`; KIP-496), and offsets of deleted topics."""

from collections.abc import Collection, Mapping

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.group_coordinator import records
from coordinator_core.group_coordinator.append_errors import JAVA_ERRORS
from coordinator_core.group_coordinator.classic.group_deletion import remove_group
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.states import DEAD, EMPTY
from coordinator_core.group_coordinator.result import ResultBuilder
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import OffsetDeleteRequest, OffsetDeleteResponse
from coordinator_core.state.classic_group import CONSUMER_PROTOCOL_TYPE


def delete_offsets(result: ResultBuilder, request: OffsetDeleteRequest, reply: ReplyHandle) -> None:
    """Deletes offsets. A group in use keeps those of subscribed topics, and all of them if its subscriptions are unknown."""
    context = result.context
    group = context.find(request.group_id)
    error = _may_delete(group)
    if group is None or error is not ErrorCode.NONE:
        result.answer(reply, OffsetDeleteResponse(error, {}))
        return
    errors = {
        partition: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if _is_subscribed(group, partition.topic) else ErrorCode.NONE
        for partition in request.partitions
    }
    known = context.known_partitions(request.group_id)
    is_last = request.partitions and group.is_in(EMPTY) and known <= set(request.partitions)
    if is_last and context.behaviour.offset_delete_removes_group:
        tombstones = records.offset_tombstones(request.group_id, known)
        if group.generation > 0:
            tombstones += (records.group_tombstone(request.group_id),)

        def removed(append_error: ErrorCode, later: ResultBuilder) -> None:
            later.answer(reply, _response(append_error, errors))

        remove_group(result, group, tombstones, "without offsets", removed)
        return
    deleted = tuple(partition for partition, found in errors.items() if found is ErrorCode.NONE and partition in known)
    if not deleted:
        result.answer(reply, OffsetDeleteResponse(ErrorCode.NONE, errors))
        return

    def written(append_error: ErrorCode, later: ResultBuilder) -> None:
        later.answer(reply, _response(append_error, errors))

    result.write(records.offset_tombstones(request.group_id, deleted), written)


def _response(append_error: ErrorCode, errors: Mapping[TopicPartition, ErrorCode]) -> OffsetDeleteResponse:
    answered = JAVA_ERRORS.get(append_error, append_error)
    return OffsetDeleteResponse(answered, errors if answered is ErrorCode.NONE else {})


def topics_deleted(result: ResultBuilder, topics: Collection[str]) -> None:
    """Removes the offsets of deleted topics from all groups, subscribed or not (`onTopicsDeleted`); not in 0.9."""
    context = result.context
    if not context.behaviour.forgets_deleted_topics:
        return
    state = context.state.offsets
    for group_id in sorted(state.groups_with_commits() | state.groups_with_pending()):
        deleted = {partition for partition in context.known_partitions(group_id) if partition.topic in topics}
        if deleted:
            result.write(records.offset_tombstones(group_id, deleted), _ignore_error)


def _may_delete(group: ClassicGroup | None) -> ErrorCode:
    if group is None or group.is_in(DEAD):
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.is_in(EMPTY) or group.protocol_type == CONSUMER_PROTOCOL_TYPE:
        return ErrorCode.NONE
    return ErrorCode.NON_EMPTY_GROUP


def _is_subscribed(group: ClassicGroup, topic: str) -> bool:
    if group.is_in(EMPTY):
        return False
    topics = group.subscribed_topics
    return topics is None or topic in topics


def _ignore_error(_error: ErrorCode, _result: ResultBuilder) -> None:
    """If the log refuses the tombstones, the offsets remain until they expire."""
