"""JoinGroup (`handleJoinGroup`, `classicGroupJoinToClassicGroup`)."""

from collections.abc import Callable, Mapping

from coordinator_core.coordinator_common.results import Answer, ReplyHandle
from coordinator_core.group_coordinator import records
from coordinator_core.group_coordinator.behaviour import SizeRule
from coordinator_core.group_coordinator.classic import rebalance
from coordinator_core.group_coordinator.classic.static_member import rejoin_static_member
from coordinator_core.group_coordinator.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from coordinator_core.group_coordinator.context import CoordinatorContext
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.members import Member
from coordinator_core.group_coordinator.group.states import COMPLETING_REBALANCE, DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from coordinator_core.group_coordinator.group_events import MemberIdGiven, MemberJoined
from coordinator_core.group_coordinator.request_checks import join_error_response
from coordinator_core.group_coordinator.result import ResultBuilder
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import UNKNOWN_MEMBER_ID, JoinGroupRequest, JoinGroupResponse


def join_group(result: ResultBuilder, request: JoinGroupRequest, reply: ReplyHandle) -> None:
    """Responds with an error or the current generation, or parks the request until the join phase ends."""
    context = result.context
    lowest, highest = context.config.group_min_session_timeout_ms, context.config.group_max_session_timeout_ms
    if not lowest <= request.session_timeout_ms <= highest:
        result.answer(reply, join_error_response(context.behaviour, ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
        return
    group = context.find(request.group_id)
    is_new_group = group is None
    if group is None:
        error = _may_create(context, request)
        if error is not ErrorCode.NONE:
            result.answer(reply, join_error_response(context.behaviour, error, request.member_id))
            return
        group = context.create(request.group_id, result.now_ms)
    if not _ACCEPTS[context.behaviour.size_rule](group, request.member_id, context.config.group_max_size):
        if request.member_id in group:
            rebalance.drop_member(result, group, group.member(request.member_id), "the group is full")
        group.remove(request.member_id)
        result.answer(reply, join_error_response(context.behaviour, ErrorCode.GROUP_MAX_SIZE_REACHED))
    else:
        error = _may_join(context, group, request)
        if error is not ErrorCode.NONE:
            # an error that brokers do not expect has no member id
            member_id = UNKNOWN_MEMBER_ID if error is ErrorCode.UNKNOWN_SERVER_ERROR else request.member_id
            result.answer(reply, join_error_response(context.behaviour, error, member_id))
            if is_new_group and not context.config.rules.empty_state:
                context.forget(group)
                return
        elif request.member_id == UNKNOWN_MEMBER_ID:
            _join_new(result, group, request, reply)
        else:
            _join_known(result, group, request, reply)
    rebalance.try_complete_join(result, group)
    if is_new_group and context.behaviour.writes_new_groups and not result.writes:
        _write_new_group(result, group, reply)


def _may_create(context: CoordinatorContext, request: JoinGroupRequest) -> ErrorCode:
    """Returns an error for groups of other types, and for requests with a member id, which is from a group that was removed."""
    if context.is_foreign(request.group_id):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE if request.member_id == UNKNOWN_MEMBER_ID else ErrorCode.UNKNOWN_MEMBER_ID


def _has_room(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    if member_id in group:
        return len(group) <= max_size or group.member(member_id).awaiting_join is not None
    return member_id != UNKNOWN_MEMBER_ID or len(group) < max_size


def _has_room_for_joined(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    """True if there is room; in PreparingRebalance the last members to rejoin may be rejected."""
    if group.is_in(PREPARING_REBALANCE):
        already = member_id in group and group.member(member_id).awaiting_join is not None
        return already or group.awaiting_join < max_size
    return group.is_in(EMPTY, DEAD) or member_id in group or len(group) < max_size


#: Checks for room for a member (KIP-389).
_ACCEPTS: Mapping[SizeRule, Callable[[ClassicGroup, str, int], bool]] = {
    SizeRule.NONE: lambda _group, _member_id, _max_size: True,
    SizeRule.MEMBERS: _has_room,
    SizeRule.JOINED: _has_room_for_joined,
}


def _may_join(context: CoordinatorContext, group: ClassicGroup, request: JoinGroupRequest) -> ErrorCode:
    if group.is_in(DEAD):
        return context.behaviour.dead_group
    if not group.supports(request.protocol_type, request.protocols):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.member_id in group.pending_members:
        # A static member gets its id only when it becomes a member, so the client invented this one.
        return ErrorCode.NONE if request.group_instance_id is None else ErrorCode.UNKNOWN_SERVER_ERROR
    if request.member_id == UNKNOWN_MEMBER_ID:
        return ErrorCode.NONE
    return group.validate_member(request.member_id, request.group_instance_id)


def _join_new(result: ResultBuilder, group: ClassicGroup, request: JoinGroupRequest, reply: ReplyHandle) -> None:
    context = result.context
    instance_id = request.group_instance_id
    member_id = context.new_member_id(request.client_id if instance_id is None else instance_id)
    if instance_id is not None and group.static_member_id(instance_id) is not None:
        rejoin_static_member(result, group, request, member_id, reply)
    elif instance_id is None and request.require_known_member_id:
        group.add_pending_member(member_id)
        rebalance.expect_member(result, group, member_id, request.session_timeout_ms)
        result.emit(MemberIdGiven(group.group_id, member_id))
        result.answer(reply, join_error_response(context.behaviour, ErrorCode.MEMBER_ID_REQUIRED, member_id))
    else:
        _add_member(result, group, request, member_id, reply)


def _join_known(result: ResultBuilder, group: ClassicGroup, request: JoinGroupRequest, reply: ReplyHandle) -> None:
    if request.member_id in group.pending_members:
        _add_member(result, group, request, request.member_id, reply)
        return
    member = group.member(request.member_id)
    may_keep_generation = group.is_in(COMPLETING_REBALANCE) or (group.is_in(STABLE) and group.leader != member.member_id)
    if may_keep_generation and member.protocols == request.protocols:
        result.answer(reply, rebalance.joined(group, member.member_id))
    else:
        _update_member(result, group, request, member, reply)


def _add_member(
    result: ResultBuilder,
    group: ClassicGroup,
    request: JoinGroupRequest,
    member_id: str,
    reply: ReplyHandle,
) -> None:
    context = result.context
    behaviour = context.behaviour
    member = Member(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=request.protocols,
        is_new=behaviour.new_members_time_out,
    )
    delay_can_grow = group.generation == 0 or behaviour.extends_every_delay
    if group.is_in(PREPARING_REBALANCE) and group.initial_rebalance and delay_can_grow:
        group.new_member_added = True
    group.add(member, reply)
    result.emit(MemberJoined(group.group_id, member_id, member.group_instance_id, member.client_id, member.client_host))
    if behaviour.new_members_time_out:
        rebalance.expect_member(result, group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance.maybe_prepare_rebalance(result, group, _reason(f"member {member_id} joined", request))


def _update_member(
    result: ResultBuilder,
    group: ClassicGroup,
    request: JoinGroupRequest,
    member: Member,
    reply: ReplyHandle,
) -> None:
    context = result.context
    superseded = join_error_response(context.behaviour, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
    rebalance.answer_join(result, group, member, superseded)
    if context.behaviour.rejoin_updates_timeouts:
        group.update(member, request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
    else:
        group.update(member, request.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    group.park_join(member, reply)
    rebalance.maybe_prepare_rebalance(result, group, _reason(f"member {member.member_id} joined again", request))


def _reason(cause: str, request: JoinGroupRequest) -> str:
    return f"{cause}: {request.reason}" if request.reason else cause


def _write_new_group(result: ResultBuilder, group: ClassicGroup, reply: ReplyHandle) -> None:
    """Writes a new group to the log; the request that created it is answered after that."""
    context = result.context
    held = tuple(result.answers)
    result.answers.clear()

    def written(error: ErrorCode, later: ResultBuilder) -> None:
        if error is ErrorCode.NONE:
            later.answers.extend(held)
            return
        _undo_new_group(later, group, reply, held, context.behaviour.group_errors.get(error, error))

    result.write((records.empty_group_metadata(context.behaviour, group),), written)


def _undo_new_group(
    result: ResultBuilder,
    group: ClassicGroup,
    reply: ReplyHandle,
    held: tuple[Answer, ...],
    error: ErrorCode,
) -> None:
    context = result.context
    for answer in held:
        if isinstance(answer.response, JoinGroupResponse):
            group.remove(answer.response.member_id)
            result.answer(answer.reply, join_error_response(context.behaviour, error))
    for member in tuple(group.members):
        if member.awaiting_join == reply:
            rebalance.drop_member(result, group, member, f"the record of its new group was not written: {error.name}", error)
    if not group.members and not group.pending_members and group.generation == 0:
        context.forget(group)
    else:
        rebalance.try_complete_join(result, group)
