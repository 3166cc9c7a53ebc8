"""A coordinator under requests, failing writes, clocks, crashes and fail-overs in any order.

After every step: every request was answered once or is pending; generations never fall; a group has one leader, which is a
member; every partition has at most one owner; every parked request has a timer that ends its wait; and the state that the log
loads to is the state of the coordinator. In the end every request is answered.
"""

from typing import Any
from uuid import UUID

from coordinator_harness import Call, Harness
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.coordinator_common.results import ShardStatus
from coordinator_core.group_coordinator.behaviour import BEHAVIOURS
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.states import ClassicGroupState
from coordinator_core.group_coordinator.timers import TimerKey, TimerKind
from coordinator_core.log.entries import ControlType
from coordinator_core.log.partitioner import partition_for
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import JoinGroupRequest, LeavingMember, Protocol
from coordinator_core.protocol.offsets import OffsetToCommit
from coordinator_core.state.classic_group import LoadedClassicGroup as GroupInLog

EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState
PARTITION = partition_for("groupId", 2)
GROUPS = [name for name in (f"group-{number}" for number in range(20)) if partition_for(name, 2) == PARTITION][:2]
PROTOCOLS = [
    (Protocol("range", b"1"),),
    (Protocol("range", b"2"), Protocol("sticky", b"2")),
    (Protocol("sticky", b"3"), Protocol("range", b"3")),
]
LOG_ERRORS = [None, None, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.MESSAGE_TOO_LARGE]

groups = st.sampled_from(GROUPS)
instances = st.sampled_from([None, None, "a", "b"])
protocols = st.sampled_from(PROTOCOLS)
sessions = st.sampled_from([500, 900])
numbers = st.integers(0, 7)
offsets = st.dictionaries(
    st.sampled_from([TopicPartition("t", 0), TopicPartition("t", 1)]),
    st.builds(
        OffsetToCommit,
        st.integers(0, 9),
        st.sampled_from([-1, 3]),
        st.sampled_from([None, "", "m"]),
        st.builds(UUID, int=numbers),
    ),
    min_size=1,
)
durations = st.sampled_from([1, 1, 20, 51, 51, 250, 250, 501, 1001, 600_001])


class CoordinatorMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.at = Harness("4")
        self.seen: list[tuple[str, str]] = []
        self.generations: dict[ClassicGroup, int] = {}
        self.refused: set[str] = set()

    @initialize(era=st.sampled_from(list(BEHAVIOURS)))
    def start(self, era: str) -> None:
        self.at = Harness(era)

    # ---- requests

    @rule(group=groups, instance=instances, protocols=protocols, session_ms=sessions, known=st.booleans(), skip=st.booleans())
    def join(
        self, group: str, instance: str | None, protocols: tuple[Protocol, ...], session_ms: int, known: bool, skip: bool
    ) -> None:
        more: dict[str, Any] = {"protocols": protocols, "session_ms": session_ms, "known": known, "skip": skip}
        self.note(self.at.join(group=group, instance=instance, **more))

    @precondition(lambda self: self.seen)
    @rule(which=numbers, protocols=protocols, session_ms=sessions)
    def join_again(self, which: int, protocols: tuple[Protocol, ...], session_ms: int) -> None:
        self.rejoin(*self.pick(which), protocols, session_ms)

    def rejoin(self, group: str, member_id: str, protocols: tuple[Protocol, ...], session_ms: int) -> None:
        found = self.at.shard.context.groups.get(group)
        instance = found.member(member_id).group_instance_id if found is not None and member_id in found else None
        self.note(self.at.join(member_id, group=group, instance=instance, protocols=protocols, session_ms=session_ms))

    @precondition(lambda self: self.seen)
    @rule(which=numbers, stale=st.booleans(), first=st.integers(0, 1))
    def sync(self, which: int, stale: bool, first: int) -> None:
        group, member_id = self.pick(which)
        self.at.sync(member_id, self.generation(group) - stale, self.shares(group, first), group=group)

    @rule(group=groups)
    def everybody_syncs(self, group: str) -> None:
        for member_id in self.members(group):
            self.at.sync(member_id, self.generation(group), self.shares(group), group=group)

    @rule(group=groups, protocols=protocols)
    def everybody_joins(self, group: str, protocols: tuple[Protocol, ...]) -> None:
        for member_id in self.members(group):
            self.rejoin(group, member_id, protocols, 500)

    @rule(group=groups, instances=st.lists(instances, min_size=1, max_size=3), sync=st.booleans())
    def a_rebalance(self, group: str, instances: list[str | None], sync: bool) -> None:
        """New members arrive, all join, and mostly all get their assignments."""
        for instance in instances:
            self.note(self.at.join(group=group, instance=instance, protocols=PROTOCOLS[1]))
        self.everybody_joins(group, PROTOCOLS[1])
        for _ in range(3):
            self.at.advance(51)
        self.everybody_syncs(group)
        if sync:
            self.at.advance(300)

    @precondition(lambda self: self.seen)
    @rule(which=numbers, stale=st.booleans())
    def heartbeat(self, which: int, stale: bool) -> None:
        group, member_id = self.pick(which)
        self.at.heartbeat(member_id, self.generation(group) - stale, group=group)

    @precondition(lambda self: self.seen)
    @rule(which=st.lists(numbers, min_size=1, max_size=3), instance=instances)
    def leave(self, which: list[int], instance: str | None) -> None:
        group, _ = self.pick(which[0])
        leaving = [LeavingMember(self.pick(one)[1]) for one in which]
        self.at.leave(*leaving, *([] if instance is None else [LeavingMember("", instance)]), group=group)

    @rule(which=st.none() | numbers, group=groups, offsets=offsets, retention_ms=st.sampled_from([-1, 100]))
    def commit(self, which: int | None, group: str, offsets: dict[TopicPartition, OffsetToCommit], retention_ms: int) -> None:
        if which is None or not self.seen:
            self.at.commit(offsets, group=group, retention_ms=retention_ms)
        else:
            group, member_id = self.pick(which)
            self.at.commit(offsets, member_id, self.generation(group), group=group)

    @rule(group=groups, offsets=offsets, producer_id=st.integers(1, 2))
    def commit_in_transaction(self, group: str, offsets: dict[TopicPartition, OffsetToCommit], producer_id: int) -> None:
        self.at.commit_in_transaction(producer_id, offsets, group=group)

    @rule(producer_id=st.integers(1, 2), control_type=st.sampled_from(ControlType))
    def end_transaction(self, producer_id: int, control_type: ControlType) -> None:
        held, self.at.hold = self.at.hold, False
        if not held:
            self.at.end_transaction(producer_id, control_type)
        self.at.hold = held

    @rule(group=groups, stable=st.booleans())
    def look(self, group: str, stable: bool) -> None:
        fetch = self.at.ask_for_offsets(group=group, stable=stable)
        assert self.at.held if not fetch.answered else fetch.error is ErrorCode.NONE
        assert self.at.describe(group).error is ErrorCode.NONE
        assert self.at.list().error is ErrorCode.NONE

    @rule(group=groups)
    def delete(self, group: str) -> None:
        self.at.delete(group)

    @rule(group=groups)
    def delete_offsets(self, group: str) -> None:
        held = self.at.hold
        if not held:
            self.at.delete_offsets(TopicPartition("t", 0), group=group)

    # ---- faults and time

    @rule(ms=durations)
    def wait(self, ms: int) -> None:
        self.at.advance(ms)

    @rule()
    def hold(self) -> None:
        self.at.hold = True

    @rule(error=st.sampled_from(LOG_ERRORS))
    def release(self, error: ErrorCode | None) -> None:
        if error is not None:
            self.refused.update(GROUPS)
        self.at.append_error = error
        self.at.release()
        self.at.append_error = None

    @rule(moves=st.sampled_from([None, None, None, None, False, True]))
    def crash(self, moves: bool | None) -> None:
        """Crash the process, or let another coordinator lead the log partition for a while."""
        if moves is None:
            return
        if moves:
            self.move()
        self.at.crash()
        self.refused.clear()

    def move(self) -> None:
        self.at.take(self.at.shard.unload(self.at.epoch + 1, self.at.now_ms))
        assert self.at.shard.status is ShardStatus.UNLOADED
        assert [call.request for call in self.at.calls if not call.answered] == []
        self.at.release()

    # ---- invariants

    @invariant()
    def the_log_loads_to_what_the_coordinator_has(self) -> None:
        assert self.at.loaded().snapshot() == self.at.shard.context.state.snapshot()

    @invariant()
    def live_groups_are_as_the_log_has_them(self) -> None:
        if self.at.held:
            return
        for group in self.live():
            in_log = self.at.shard.context.state.registry.groups.get(group.group_id)
            if group.state is STABLE:
                assert isinstance(in_log, GroupInLog)
                timeouts = {member.member_id: member.rebalance_timeout_ms for member in in_log.view({}).members}
                assert self.as_in_log(group) == (
                    in_log.value.generation,
                    in_log.value.leader,
                    in_log.value.protocol,
                    {
                        (
                            m.member_id,
                            m.group_instance_id,
                            m.session_timeout,
                            timeouts[m.member_id],
                            m.subscription,
                            m.assignment,
                        )
                        for m in in_log.value.members
                    },
                )
            elif group.state is EMPTY and group.generation and group.group_id not in self.refused:
                assert isinstance(in_log, GroupInLog)
                assert (in_log.value.generation, in_log.value.members) == (group.generation, ())

    @invariant()
    def generations_never_fall(self) -> None:
        for group in self.live():
            assert group.generation >= self.generations.get(group, 0)
            self.generations[group] = group.generation

    @invariant()
    def one_member_leads(self) -> None:
        for group in self.live():
            assert (group.leader is None) == (not group.members)
            assert group.leader is None or group.leader in group
            assert group.members or group.state in (EMPTY, PREPARING_REBALANCE, DEAD)
            assert not (group.members and group.state is EMPTY)

    @invariant()
    def no_partition_is_owned_twice(self) -> None:
        for group in self.live():
            if group.state is STABLE:
                owned = b"".join(member.assignment for member in group.members)
                assert len(set(owned)) == len(owned)

    @invariant()
    def nobody_is_forgotten(self) -> None:
        """A request without a response is parked or waits for the log; a parked request has no response."""
        parked = [t for g in self.live() for m in g for t in (m.awaiting_join, m.awaiting_sync) if t is not None]
        assert all(isinstance(reply, Call) and not reply.answered for reply in parked)
        assert len(set(map(id, parked))) == len(parked)
        if not self.at.held:
            waiting = {id(call) for call in self.at.calls if not call.answered}
            assert waiting == set(map(id, parked))

    @invariant()
    def nothing_is_under_way_once_the_log_answered(self) -> None:
        if not self.at.held:
            assert [group for group in GROUPS if self.at.shard.context.in_flight.of(group)] == []
            assert [group.group_id for group in self.live() if group.storing_generation is not None] == []
            assert [group.group_id for group in self.live() if group.state is DEAD] == []

    @invariant()
    def waiting_ends(self) -> None:
        timers = self.at.shard.context.timers
        for group in self.live():
            name = group.group_id
            assert (TimerKey(TimerKind.JOIN, name) in timers) == (group.state is PREPARING_REBALANCE)
            if group.state is COMPLETING_REBALANCE and group.storing_generation is None:
                assert (TimerKey(TimerKind.SYNC, name) in timers) == self.at.config.behaviour.awaits_syncs
            if group.state is not DEAD:
                for member in group.members:
                    assert member.keeps_session_by_waiting or TimerKey(TimerKind.HEARTBEAT, name, member.member_id) in timers
                for pending in group.pending_members:
                    assert TimerKey(TimerKind.HEARTBEAT, name, pending) in timers
            assert group.awaiting_join == sum(member.awaiting_join is not None for member in group.members)

    def teardown(self) -> None:
        """Require that every pending request is answered once the log answers and time passes."""
        self.at.release()
        for _ in range(20):
            self.at.advance(400_000)
        assert [call.request for call in self.at.calls if not call.answered] == []

    # ---- a client's knowledge

    def note(self, call: Call) -> None:
        for call in self.at.calls:
            if call.answered and isinstance(call.request, JoinGroupRequest):
                name = (call.request.group_id, call.response.member_id)
                if call.response.member_id and name not in self.seen:
                    self.seen.append(name)
        for group in self.live():
            self.seen += [(group.group_id, m.member_id) for m in group if (group.group_id, m.member_id) not in self.seen]

    def pick(self, which: int) -> tuple[str, str]:
        """Mostly a current member, else one of the last known member ids."""
        now = [(group.group_id, member.member_id) for group in self.live() for member in group]
        pool = now if now and which % 3 else self.seen
        return pool[-1 - which % len(pool)]

    def live(self) -> list[ClassicGroup]:
        return list(self.at.shard.context.groups.values())

    def members(self, group: str) -> list[str]:
        found = self.at.shard.context.groups.get(group)
        return [] if found is None else [m.member_id for m in found if (group, m.member_id) in self.seen]

    def shares(self, group: str, first: int = 0) -> dict[str, bytes]:
        """Six partitions, from this one on, shared by the members."""
        members = sorted(self.members(group))
        return {member: bytes(range(first + number, first + 6, len(members))) for number, member in enumerate(members)}

    def generation(self, group: str) -> int:
        found = self.at.shard.context.groups.get(group)
        return 0 if found is None else found.generation

    @staticmethod
    def as_in_log(group: ClassicGroup) -> tuple[object, ...]:
        protocol = group.protocol_name or ""
        return (
            group.generation,
            group.leader,
            group.protocol_name,
            {
                (
                    m.member_id,
                    m.group_instance_id,
                    m.session_timeout_ms,
                    m.rebalance_timeout_ms,
                    m.metadata(protocol),
                    m.assignment,
                )
                for m in group.members
            },
        )


TestCoordinatorMachine = CoordinatorMachine.TestCase
TestCoordinatorMachine.settings = settings(
    max_examples=2 * (settings.default or settings()).max_examples,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
)
