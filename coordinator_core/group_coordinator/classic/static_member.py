"""JoinGroup of a restarted static member, which has no member id and resumes its membership (KIP-345, KIP-814)."""

from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.group_coordinator import records
from coordinator_core.group_coordinator.classic import rebalance
from coordinator_core.group_coordinator.context import CoordinatorContext
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.members import Member
from coordinator_core.group_coordinator.group.states import COMPLETING_REBALANCE, STABLE
from coordinator_core.group_coordinator.result import ResultBuilder
from coordinator_core.group_coordinator.timers import TimerKey, TimerKind
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import (
    UNKNOWN_MEMBER_ID,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupResponse,
)


def rejoin_static_member(
    result: ResultBuilder,
    group: ClassicGroup,
    request: JoinGroupRequest,
    member_id: str,
    reply: ReplyHandle,
) -> None:
    """Replaces the old member id, and fences its parked requests (`updateStaticMemberAndRebalance`).

    A Stable group whose protocol does not change does not rebalance: the group is written with the new id, then the request is
    answered.
    """
    context = result.context
    old_id = group.static_member_id(request.group_instance_id or "") or ""
    old_leader = group.leader or ""
    member = _replace(result, group, old_id, member_id)
    before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    group.update(member, request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
    group.park_join(member, reply)
    rebalance.restart_session(result, group, member)
    if group.is_in(COMPLETING_REBALANCE):
        rebalance.prepare_rebalance(result, group, f"static member {request.group_instance_id} rejoined as {member_id}")
        return
    if not group.is_in(STABLE):
        return
    if group.select_protocol() != group.protocol_name:
        reason = f"static member {request.group_instance_id} rejoined as {member_id}, and the protocol changes"
        rebalance.prepare_rebalance(result, group, reason)
        return
    generation = group.generation

    def written(error: ErrorCode, later: ResultBuilder) -> None:
        if not group.is_in(STABLE) or group.generation != generation or member.awaiting_join != reply:
            # A rebalance has begun meanwhile and includes this join; or the member was fenced or has left, and was answered.
            return
        if error is ErrorCode.NONE:
            response = _unchanged(group, member.member_id, old_leader, skips=request.supports_skipping_assignment)
            rebalance.answer_join(later, group, member, response)
            rebalance.restart_session(later, group, member)
            return
        group.update(member, *before)
        refused = _refused(group, old_leader, context.behaviour.group_errors.get(error, error))
        rebalance.answer_join(later, group, member, refused)
        _replace(later, group, member.member_id, _id_in_log(context, group, request.group_instance_id) or old_id)
        rebalance.restart_session(later, group, member)

    assignments = {each.member_id: each.assignment for each in group.members}
    result.write((records.group_metadata(context.behaviour, group, assignments),), written)


def _replace(result: ResultBuilder, group: ClassicGroup, old_id: str, new_id: str) -> Member:
    context = result.context
    member = group.member(old_id)
    rebalance.answer_join(result, group, member, JoinGroupResponse(ErrorCode.FENCED_INSTANCE_ID, old_id))
    rebalance.answer_sync(result, member, SyncGroupResponse(ErrorCode.FENCED_INSTANCE_ID))
    context.timers.cancel(TimerKey(TimerKind.HEARTBEAT, group.group_id, old_id))
    return group.rename(old_id, new_id)


def _unchanged(group: ClassicGroup, member_id: str, old_leader: str, *, skips: bool) -> JoinGroupResponse:
    """Returns the response without a rebalance. Clients that cannot skip the assignment get the old leader's id, so that they do
    not act as the leader."""
    leads = skips and group.leader == member_id
    return JoinGroupResponse(
        error=ErrorCode.NONE,
        member_id=member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=(group.leader or "") if skips else old_leader,
        skip_assignment=leads,
        members=group.join_members() if leads else (),
    )


def _refused(group: ClassicGroup, old_leader: str, error: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error, UNKNOWN_MEMBER_ID, group.generation, group.protocol_type, group.protocol_name, old_leader)


def _id_in_log(context: CoordinatorContext, group: ClassicGroup, instance_id: str | None) -> str | None:
    known = context.state.group(group.group_id)
    members = () if known is None else known.members
    return next((m.member_id for m in members if m.group_instance_id == instance_id), None)
