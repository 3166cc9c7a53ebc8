"""Heartbeat (`handleHeartbeat`, `classicGroupHeartbeatToClassicGroup`)."""

from collections.abc import Callable, Mapping

from coordinator_core.coordinator.behaviour import HeartbeatCheck
from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import ClassicGroup
from coordinator_core.coordinator.classic.rebalance import DEAD, EMPTY, PREPARING_REBALANCE
from coordinator_core.coordinator.classic.validation import validate_generation, validate_member
from coordinator_core.coordinator.context import CoordinatorContext
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.messages.membership import HeartbeatRequest, HeartbeatResponse
from coordinator_core.coordinator.turn import Ticket, Turn


def heartbeat(context: CoordinatorContext, turn: Turn, request: HeartbeatRequest, ticket: Ticket) -> None:
    """Restarts the session of a member of the generation, and tells it when it is to join again."""
    turn.answer(ticket, HeartbeatResponse(_heartbeat(context, turn, request)))


def _heartbeat(context: CoordinatorContext, turn: Turn, request: HeartbeatRequest) -> ErrorCode:
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
    rebalance.restart_session(context, turn, group, group.member(request.member_id))
    return ErrorCode.REBALANCE_IN_PROGRESS if group.is_in(PREPARING_REBALANCE) else ErrorCode.NONE


def _of_generation(group: ClassicGroup, request: HeartbeatRequest) -> ErrorCode:
    return validate_generation(group, request.member_id, request.group_instance_id, request.generation)


_CHECKS: Mapping[HeartbeatCheck, Callable[[ClassicGroup, HeartbeatRequest], ErrorCode]] = {
    HeartbeatCheck.NOTHING: lambda _group, _request: ErrorCode.NONE,
    HeartbeatCheck.MEMBER: lambda group, request: validate_member(group, request.member_id, request.group_instance_id),
    HeartbeatCheck.GENERATION: _of_generation,
}
