"""Rebalances of a group: start, join phase, sync phase and end; removal of members, and the timeouts that cause it.

Mirrors `prepareRebalance`, `onCompleteJoin`, `onExpirePendingSync`, `onExpireHeartbeat` of both coordinators. Every parked
request is answered, even if its member is removed.
"""

from coordinator_core.codec import Record
from coordinator_core.group_coordinator import records
from coordinator_core.group_coordinator.context import CoordinatorContext
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.members import Member
from coordinator_core.group_coordinator.group.states import COMPLETING_REBALANCE, DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from coordinator_core.group_coordinator.group_events import GenerationBegan, GroupRemoved, MemberRemoved, RebalanceBegan
from coordinator_core.group_coordinator.request_checks import join_error_response
from coordinator_core.group_coordinator.result import Continuation, ResultBuilder
from coordinator_core.group_coordinator.timers import HeartbeatTimeout, JoinTimeout, SyncTimeout, TimerKey, TimerKind
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import JoinGroupResponse, SyncGroupResponse


def maybe_prepare_rebalance(result: ResultBuilder, group: ClassicGroup, reason: str) -> None:
    """Begins a rebalance, unless one is being prepared or the group is Dead."""
    if group.can_rebalance:
        prepare_rebalance(result, group, reason)


def prepare_rebalance(result: ResultBuilder, group: ClassicGroup, reason: str) -> None:
    """Begins a rebalance: that of an Empty group is delayed, any other waits until all known members have joined."""
    context = result.context
    result.emit(RebalanceBegan(group.group_id, group.state, group.generation, reason))
    if group.is_in(COMPLETING_REBALANCE):
        reset_assignments(result, group, ErrorCode.REBALANCE_IN_PROGRESS)
    forget_pending_syncs(context, group)
    group.initial_rebalance = group.is_in(EMPTY) and context.behaviour.delays_first_rebalance
    group.new_member_added = False
    group.transition_to(PREPARING_REBALANCE, result.now_ms)
    if group.initial_rebalance:
        delay_ms = context.config.group_initial_rebalance_delay_ms
        _delay_join(result, group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
    elif group.all_joined:
        complete_join(result, group)
    else:
        _schedule_join(result, group)


def try_complete_join(result: ResultBuilder, group: ClassicGroup) -> None:
    """Ends the join phase early if all members have joined."""
    if group.is_in(PREPARING_REBALANCE) and not group.initial_rebalance and group.all_joined:
        complete_join(result, group)


def join_timed_out(result: ResultBuilder, due: JoinTimeout) -> None:
    """Ends the join phase, or extends the delay of an initial rebalance if new members have joined."""
    context = result.context
    group = context.groups.get(due.group_id)
    if group is None or not group.is_in(PREPARING_REBALANCE):
        return
    if group.initial_rebalance and group.new_member_added and due.remaining_ms:
        group.new_member_added = False
        delay_ms = min(context.config.group_initial_rebalance_delay_ms, due.remaining_ms)
        _delay_join(result, group, delay_ms, max(due.remaining_ms - due.delay_ms, 0))
    else:
        complete_join(result, group)


def complete_join(result: ResultBuilder, group: ClassicGroup) -> None:
    """Ends the join phase: dynamic members that did not join are removed; the others are the next generation."""
    context = result.context
    context.timers.cancel(TimerKey(TimerKind.JOIN, group.group_id))
    for member in group.not_yet_rejoined():
        if not member.is_static:
            drop_member(result, group, member, "did not rejoin in time")
    if not group.elect_joined_leader() and group.members:
        group.initial_rebalance = False
        _schedule_join(result, group)
        return
    if not group.members and not context.config.rules.empty_state:
        delete_group_records(result, group, (records.group_tombstone(group.group_id),), "empty", _ignore_error)
        return
    group.next_generation(result.now_ms)
    result.emit(GenerationBegan(group.group_id, group.generation, len(group), group.protocol_name, group.leader))
    if group.is_in(EMPTY):
        result.write((records.group_metadata(context.behaviour, group, {}),), _ignore_error)
        return
    for member in group.members:
        answer_join(result, group, member, joined(group, member.member_id))
        member.is_new = False
        restart_session(result, group, member)
    if context.behaviour.awaits_syncs:
        _await_syncs(result, group)


def delete_group_records(
    result: ResultBuilder,
    group: ClassicGroup,
    tombstones: tuple[Record, ...],
    reason: str,
    then: Continuation,
) -> None:
    """Writes the tombstones of a group without members and pending member ids.

    The group is Dead until the log has them. If the log refuses them, the group is Empty again.
    """
    context = result.context
    since = group.state_timestamp
    group.transition_to(DEAD, result.now_ms)

    def written(error: ErrorCode, later: ResultBuilder) -> None:
        if error is ErrorCode.NONE:
            context.forget(group)
            offsets = sum(record.record_type == records.OFFSET_COMMIT for record in tombstones)
            later.emit(GroupRemoved(group.group_id, reason, offsets))
        elif context.groups.get(group.group_id) is group:
            group.revive(since)
        then(error, later)

    if tombstones:
        result.write(tombstones, written)
    else:
        written(ErrorCode.NONE, result)


def joined(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """Returns the JoinGroup response for a member of the current generation; the leader's has the list of members."""
    return JoinGroupResponse(
        error=ErrorCode.NONE,
        member_id=member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        members=group.join_members() if group.leader == member_id else (),
    )


# ---- sync


def _await_syncs(result: ResultBuilder, group: ClassicGroup) -> None:
    context = result.context
    for member in group.members:
        group.add_pending_sync(member.member_id)
    due = SyncTimeout(group.group_id, group.generation)
    context.timers.schedule(TimerKey(TimerKind.SYNC, group.group_id), result.now_ms + group.rebalance_timeout_ms, due)


def sync_timed_out(result: ResultBuilder, due: SyncTimeout) -> None:
    """Removes members of the generation that did not send SyncGroup in time; the others rebalance (KAFKA-12890)."""
    context = result.context
    group = context.groups.get(due.group_id)
    if group is None or group.generation != due.generation or not group.is_in(COMPLETING_REBALANCE, STABLE):
        return
    late = [member for member in group.members if member.member_id in group.pending_sync]
    if late:
        for member in late:
            drop_member(result, group, member, "did not send SyncGroup in time")
        prepare_rebalance(result, group, f"{len(late)} members did not send SyncGroup in time")


def sync_received(context: CoordinatorContext, group: ClassicGroup, member_id: str) -> None:
    """Records that the member has sent SyncGroup."""
    group.remove_pending_sync(member_id)
    if not group.pending_sync:
        context.timers.cancel(TimerKey(TimerKind.SYNC, group.group_id))


def forget_pending_syncs(context: CoordinatorContext, group: ClassicGroup) -> None:
    """Cancels the timeout for SyncGroup."""
    group.pending_sync.clear()
    context.timers.cancel(TimerKey(TimerKind.SYNC, group.group_id))


def propagate_assignments(result: ResultBuilder, group: ClassicGroup) -> None:
    """Answers all parked SyncGroups with the assignments of their members."""
    for member in group.members:
        response = SyncGroupResponse(ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment)
        if answer_sync(result, member, response):
            restart_session(result, group, member)


def reset_assignments(result: ResultBuilder, group: ClassicGroup, error: ErrorCode) -> None:
    """Clears all assignments, and answers all parked SyncGroups with the error."""
    for member in group.members:
        member.assignment = b""
        if answer_sync(result, member, SyncGroupResponse(error)):
            restart_session(result, group, member)


# ---- members


def restart_session(result: ResultBuilder, group: ClassicGroup, member: Member) -> None:
    """Restarts the session timeout of the member."""
    expect_member(result, group, member.member_id, member.session_timeout_ms)


def expect_member(result: ResultBuilder, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
    """Sets the time within which the member must send a request."""
    context = result.context
    key = TimerKey(TimerKind.HEARTBEAT, group.group_id, member_id)
    context.timers.schedule(key, result.now_ms + timeout_ms, HeartbeatTimeout(group.group_id, member_id))


def heartbeat_timed_out(result: ResultBuilder, due: HeartbeatTimeout) -> None:
    """Removes a member whose session has timed out, unless a parked request keeps it alive, or an unused pending id."""
    context = result.context
    group = context.groups.get(due.group_id)
    if group is None or group.is_in(DEAD):
        return
    if due.member_id in group.pending_members:
        remove_pending_member(result, group, due.member_id, "did not rejoin with its member id in time")
    elif due.member_id in group:
        member = group.member(due.member_id)
        if not member.keeps_session_by_waiting:
            remove_member(result, group, member, "session timeout")


def remove_member(result: ResultBuilder, group: ClassicGroup, member: Member, reason: str) -> None:
    """Removes the member; the others rebalance (`removeMemberAndUpdateGroup`)."""
    drop_member(result, group, member, reason)
    if group.is_in(STABLE, COMPLETING_REBALANCE):
        prepare_rebalance(result, group, f"member {member.member_id} was removed: {reason}")
    else:
        try_complete_join(result, group)


def remove_pending_member(result: ResultBuilder, group: ClassicGroup, member_id: str, reason: str) -> None:
    """Removes a pending member id."""
    context = result.context
    group.remove(member_id)
    result.emit(MemberRemoved(group.group_id, member_id, reason))
    context.timers.cancel(TimerKey(TimerKind.HEARTBEAT, group.group_id, member_id))
    try_complete_join(result, group)


def drop_member(
    result: ResultBuilder,
    group: ClassicGroup,
    member: Member,
    reason: str,
    error: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID,
) -> None:
    """Removes the member and answers its parked requests with the error; the caller decides on a rebalance."""
    context = result.context
    answer_join(result, group, member, join_error_response(context.behaviour, error))
    answer_sync(result, member, SyncGroupResponse(error))
    group.remove(member.member_id)
    result.emit(MemberRemoved(group.group_id, member.member_id, reason))
    context.timers.cancel(TimerKey(TimerKind.HEARTBEAT, group.group_id, member.member_id))


def answer_join(result: ResultBuilder, group: ClassicGroup, member: Member, response: JoinGroupResponse) -> bool:
    """Answers the member's parked JoinGroup; returns False if there is none."""
    reply = member.awaiting_join
    if reply is None:
        return False
    group.park_join(member, None)
    result.answer(reply, response)
    return True


def answer_sync(result: ResultBuilder, member: Member, response: SyncGroupResponse) -> bool:
    """Answers the member's parked SyncGroup; returns False if there is none."""
    reply = member.awaiting_sync
    if reply is None:
        return False
    member.awaiting_sync = None
    result.answer(reply, response)
    return True


def _delay_join(result: ResultBuilder, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
    context = result.context
    due = JoinTimeout(group.group_id, delay_ms, remaining_ms)
    context.timers.schedule(TimerKey(TimerKind.JOIN, group.group_id), result.now_ms + delay_ms, due)


def _schedule_join(result: ResultBuilder, group: ClassicGroup) -> None:
    context = result.context
    key = TimerKey(TimerKind.JOIN, group.group_id)
    context.timers.schedule(key, result.now_ms + group.rebalance_timeout_ms, JoinTimeout(group.group_id))


def _ignore_error(_error: ErrorCode, _result: ResultBuilder) -> None:
    """A group without members remains Empty, even if the log refused the record: the next record of the group, or in 0.9 the
    next sweep, writes it again."""
