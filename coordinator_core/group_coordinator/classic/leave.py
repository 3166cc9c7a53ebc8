"""LeaveGroup (`handleLeaveGroup`, `classicGroupLeaveToClassicGroup`)."""

from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.group_coordinator.classic import rebalance
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.states import COMPLETING_REBALANCE, DEAD, STABLE
from coordinator_core.group_coordinator.result import ResultBuilder
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import (
    UNKNOWN_MEMBER_ID,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
)


def leave_group(result: ResultBuilder, request: LeaveGroupRequest, reply: ReplyHandle) -> None:
    """Removes each listed member; an unknown member does not affect the removal of the others."""
    context = result.context
    group = context.find(request.group_id)
    if group is not None and group.is_in(DEAD):
        result.answer(reply, LeaveGroupResponse(context.behaviour.dead_group))
        return
    left = []
    for leaving in request.members:
        error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _leave(result, group, leaving)
        left.append(LeftMember(leaving.member_id, leaving.group_instance_id, error))
    result.answer(reply, LeaveGroupResponse(ErrorCode.NONE, tuple(left)))


def _leave(result: ResultBuilder, group: ClassicGroup, leaving: LeavingMember) -> ErrorCode:
    member_id = leaving.member_id
    if member_id in group.pending_members:
        # of the state before: in PreparingRebalance the removal may complete the join, and that is all
        is_rebalanced = result.context.behaviour.pending_leaves_rebalance and group.is_in(COMPLETING_REBALANCE, STABLE)
        rebalance.remove_pending_member(result, group, member_id, _reason(leaving))
        if is_rebalanced:
            rebalance.maybe_prepare_rebalance(result, group, _reason(leaving))
        return ErrorCode.NONE
    if member_id == UNKNOWN_MEMBER_ID:
        member_id = "" if leaving.group_instance_id is None else group.static_member_id(leaving.group_instance_id) or ""
    error = group.validate_member(member_id, leaving.group_instance_id)
    if error is ErrorCode.NONE:
        rebalance.remove_member(result, group, group.member(member_id), _reason(leaving))
    return error


def _reason(leaving: LeavingMember) -> str:
    return f"LeaveGroup: {leaving.reason}" if leaving.reason else "LeaveGroup"
