"""Deletion of groups: DeleteGroups, and the removal of a group by the sweep (`GroupMetadataManager.removeGroup`)."""

from coordinator_core.codec import Record
from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.group_coordinator import records
from coordinator_core.group_coordinator.append_errors import JAVA_ERRORS
from coordinator_core.group_coordinator.classic import rebalance
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.states import DEAD, EMPTY
from coordinator_core.group_coordinator.result import Continuation, ResultBuilder
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import DeleteGroupRequest, DeleteGroupResponse


def delete_group(result: ResultBuilder, request: DeleteGroupRequest, reply: ReplyHandle) -> None:
    """Deletes an Empty group with all of its offsets (KIP-229)."""
    context = result.context
    group = context.find(request.group_id)
    if group is None or group.is_in(DEAD):
        result.answer(reply, DeleteGroupResponse(request.group_id, ErrorCode.GROUP_ID_NOT_FOUND))
        return
    if not group.is_in(EMPTY):
        result.answer(reply, DeleteGroupResponse(request.group_id, ErrorCode.NON_EMPTY_GROUP))
        return
    tombstones = records.offset_tombstones(request.group_id, context.known_partitions(request.group_id))
    if group.generation > 0 or context.behaviour.always_group_tombstone:
        tombstones += (records.group_tombstone(request.group_id),)

    def answer(error: ErrorCode, later: ResultBuilder) -> None:
        answered = JAVA_ERRORS.get(error, error)
        later.answer(reply, DeleteGroupResponse(request.group_id, answered))

    remove_group(result, group, tombstones, "deleted", answer)


def remove_group(
    result: ResultBuilder,
    group: ClassicGroup,
    tombstones: tuple[Record, ...],
    reason: str,
    then: Continuation,
) -> None:
    """Removes a group without members: its pending member ids, then its records (`rebalance.delete_group_records`)."""
    for member_id in tuple(group.pending_members):
        rebalance.remove_pending_member(result, group, member_id, f"the group is {reason}")
    rebalance.delete_group_records(result, group, tombstones, reason, then)
