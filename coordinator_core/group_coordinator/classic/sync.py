"""SyncGroup (`handleSyncGroup`, `classicGroupSyncToClassicGroup`)."""

from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.group_coordinator import records
from coordinator_core.group_coordinator.classic import rebalance
from coordinator_core.group_coordinator.context import CoordinatorContext
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.states import COMPLETING_REBALANCE, DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from coordinator_core.group_coordinator.group_events import GroupStabilized
from coordinator_core.group_coordinator.result import ResultBuilder
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import SyncGroupRequest, SyncGroupResponse


def sync_group(result: ResultBuilder, request: SyncGroupRequest, reply: ReplyHandle) -> None:
    """Returns the assignment in a Stable group; otherwise parks the request until the log has the leader's assignment."""
    context = result.context
    group = context.find(request.group_id)
    error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _validate(context, group, request)
    if group is None or error is not ErrorCode.NONE:
        result.answer(reply, SyncGroupResponse(error))
        return
    member = group.member(request.member_id)
    rebalance.sync_received(context, group, member.member_id)
    if group.is_in(STABLE):
        response = SyncGroupResponse(ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment)
        result.answer(reply, response)
        if context.behaviour.stable_sync_keeps_session:
            rebalance.restart_session(result, group, member)
        return
    rebalance.answer_sync(result, member, SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS))
    member.awaiting_sync = reply
    if group.leader == member.member_id and group.storing_generation is None:
        _store_assignments(result, group, request)


def _validate(context: CoordinatorContext, group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    if group.is_in(DEAD):
        return context.behaviour.dead_group
    if group.is_in(EMPTY) and context.behaviour.sync_checks_empty_first:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.validate_generation(request.member_id, request.group_instance_id, request.generation)
    if error is not ErrorCode.NONE:
        return error
    if request.protocol_type not in (None, group.protocol_type) or request.protocol_name not in (None, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return _ERROR_IN_STATE.get(group.state, ErrorCode.NONE)


_ERROR_IN_STATE = {EMPTY: ErrorCode.UNKNOWN_MEMBER_ID, PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS}


def _store_assignments(result: ResultBuilder, group: ClassicGroup, request: SyncGroupRequest) -> None:
    """Writes the leader's assignment; members missing in it get empty assignments. During the append, a second assignment of the
    same generation is ignored: otherwise the log and the members could have different ones."""
    context = result.context
    generation = group.storing_generation = group.generation
    assignments = {member.member_id: request.assignments.get(member.member_id, b"") for member in group.members}

    def stored(error: ErrorCode, later: ResultBuilder) -> None:
        if group.storing_generation == generation:
            group.storing_generation = None
        if not group.is_in(COMPLETING_REBALANCE) or group.generation != generation:
            return
        if error is not ErrorCode.NONE:
            rebalance.reset_assignments(later, group, context.behaviour.group_errors.get(error, error))
            rebalance.prepare_rebalance(later, group, f"the assignment was not written: {error.name}")
            return
        for member in group.members:
            member.assignment = assignments[member.member_id]
        rebalance.propagate_assignments(later, group)
        group.transition_to(STABLE, later.now_ms)
        later.emit(GroupStabilized(group.group_id, group.generation, len(group)))

    result.write((records.group_metadata(context.behaviour, group, assignments),), stored)
