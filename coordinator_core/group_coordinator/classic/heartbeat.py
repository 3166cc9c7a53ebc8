"""Heartbeat (`handleHeartbeat`, `classicGroupHeartbeatToClassicGroup`)."""

from collections.abc import Callable, Mapping

from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.group_coordinator.behaviour import HeartbeatCheck
from coordinator_core.group_coordinator.classic import rebalance
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.states import DEAD, EMPTY, PREPARING_REBALANCE
from coordinator_core.group_coordinator.result import ResultBuilder
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import HeartbeatRequest, HeartbeatResponse


def heartbeat(result: ResultBuilder, request: HeartbeatRequest, reply: ReplyHandle) -> None:
    """Restarts the session of a member of the generation; returns REBALANCE_IN_PROGRESS if the member must join again."""
    result.answer(reply, HeartbeatResponse(_heartbeat(result, request)))


def _heartbeat(result: ResultBuilder, request: HeartbeatRequest) -> ErrorCode:
    context = result.context
    group = context.find(request.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.is_in(DEAD):
        return context.behaviour.dead_group
    check = context.behaviour.idle_heartbeats.get(group.state)
    if check is not None:
        error = _CHECKS[check](group, request)
        return ErrorCode.REBALANCE_IN_PROGRESS if error is ErrorCode.NONE else error
    error = _of_generation(group, request)
    if error is not ErrorCode.NONE:
        return error
    if group.is_in(EMPTY):
        return ErrorCode.UNKNOWN_MEMBER_ID
    rebalance.restart_session(result, group, group.member(request.member_id))
    return ErrorCode.REBALANCE_IN_PROGRESS if group.is_in(PREPARING_REBALANCE) else ErrorCode.NONE


def _of_generation(group: ClassicGroup, request: HeartbeatRequest) -> ErrorCode:
    return group.validate_generation(request.member_id, request.group_instance_id, request.generation)


_CHECKS: Mapping[HeartbeatCheck, Callable[[ClassicGroup, HeartbeatRequest], ErrorCode]] = {
    HeartbeatCheck.NOTHING: lambda _group, _request: ErrorCode.NONE,
    HeartbeatCheck.MEMBER: lambda group, request: group.validate_member(request.member_id, request.group_instance_id),
    HeartbeatCheck.GENERATION: _of_generation,
}
