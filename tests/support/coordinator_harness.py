"""A group coordinator with a log and a clock, driven by a test: no socket, no thread, no sleeping.

The clock moves when a test moves it. Writes of the coordinator pass as bytes into a log, immediately or when the test releases
them. Fields that no protocol version of the era has are left out of requests, as a client of that time would do.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from coordinator_core.codec import decode, encode
from coordinator_core.codec.records import Record
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.states import ClassicGroupState
from coordinator_core.group_coordinator.group_coordinator import GroupCoordinator
from coordinator_core.group_coordinator.result import CoordinatorResult, Write
from coordinator_core.group_coordinator.shard import GroupCoordinatorShard
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.record_batch import control_key
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, CoordinatorRequest, GroupRequest, Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import DeleteGroupRequest, DescribeGroupRequest, ListGroupsRequest
from coordinator_core.protocol.membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeavingMember,
    Protocol,
    SyncGroupRequest,
)
from coordinator_core.protocol.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetToCommit,
    ProducerEpoch,
    TxnMarkerRequest,
    TxnOffsetCommitRequest,
)
from coordinator_core.state.era import Era
from coordinator_core.state.group_state import GroupState

GROUP = "groupId"
OTHER_GROUP = "otherGroup"
CONSUMER = "consumer"
RANGE = (Protocol("range", b""),)
RANGE_OR_ROUND_ROBIN = (Protocol("range", b""), Protocol("roundrobin", b""))
DELAY_MS = 50
TIMEOUT_MS = 500
START_MS = 1_700_000_000_000
LEADER, FOLLOWER = "leader", "follower"

SMALL = {
    "group_min_session_timeout_ms": 10,
    "group_max_session_timeout_ms": 10 * 60 * 1000,
    "group_max_size": 4,
    "group_initial_rebalance_delay_ms": DELAY_MS,
    "offsets_topic_num_partitions": 2,
}


class Call:
    """A request that was sent. Reading `response` fails the test until there is one."""

    def __init__(self, request: Any) -> None:
        # about the coordinator, or about a member that looks for it
        self.request = request
        self.answers: list[Any] = []

    @property
    def answered(self) -> bool:
        return bool(self.answers)

    @property
    def response(self) -> Any:
        assert len(self.answers) == 1, f"{len(self.answers)} answers to {self.request}"
        return self.answers[0]

    @property
    def error(self) -> ErrorCode:
        error: ErrorCode = self.response.error
        return error


class Harness:
    """The coordinator of two log partitions; it leads the one that has GROUP.

    `hold` delays writes until `release`; `append_error` is the error that the log returns instead of taking a write.
    """

    def __init__(self, era: str = "4", **changes: Any) -> None:
        self.era = era
        self.config = CoordinatorConfig(era=era, **(SMALL | changes))
        self.now_ms = START_MS
        self.hold = False
        self.append_error: ErrorCode | None = None
        self.calls: list[Call] = []
        self.ids = 0
        self.epoch = 0
        self.held: list[tuple[int, Write]] = []
        self.written: list[Record] = []
        self.coordinator = GroupCoordinator(self.config, {})
        self.partition = self.coordinator.partition_for(GROUP)
        self.logs: dict[int, list[LogRecord]] = {}
        self.lead(self.partition)

    # ---- the log partitions

    def lead(self, partition: int) -> GroupCoordinatorShard:
        """Load a log partition from its log."""
        shard = GroupCoordinatorShard(partition, self.config, self._member_id)
        self.epoch += 1
        assert shard.begin_load(self.epoch, self.now_ms)
        assert shard.replay(self.logs.setdefault(partition, [])) == ()
        self.coordinator.shards[partition] = shard
        self._take(shard, shard.finish_load(self.now_ms))
        return shard

    @property
    def shard(self) -> GroupCoordinatorShard:
        return self.coordinator.shards[self.partition]

    def crash(self) -> None:
        """Stop the process and load the log into another: what was not answered or not written is lost."""
        self.held.clear()
        self.calls.clear()
        self.lead(self.partition)

    def release(self) -> None:
        """Let the log take, or reject, the writes that were held."""
        self.hold = False
        held, self.held = self.held, []
        for partition, write in held:
            self._append(self.coordinator.shards[partition], write)

    def advance(self, ms: int) -> None:
        """Advance the clock by this many ms and run the timers that expire."""
        self.now_ms += ms
        for shard in self.coordinator.shards.values():
            self._take(shard, shard.timers_due(self.now_ms))

    def send(self, request: CoordinatorRequest, partition: int | None = None) -> Call:
        """Send a request to the shard of its group or to the given one."""
        call = Call(request)
        self.calls.append(call)
        if partition is None:
            assert isinstance(request, GroupRequest)
            to = self.coordinator.route(request)
        else:
            to = self.coordinator.shards[partition]
        if isinstance(to, GroupCoordinatorShard):
            self._take(to, to.handle(request, call, self.now_ms))
        else:
            call.answers.append(to)
        return call

    def take(self, result: CoordinatorResult) -> None:
        """Deliver a result that a test got directly from the shard."""
        self._take(self.shard, result)

    def loaded(self, partition: int | None = None) -> GroupState:
        """The state that the log loads to."""
        at = self.partition if partition is None else partition
        state = GroupState(Era.named(self.era), self.shard.context.state.now_ms, self.config.offsets_retention_ms)
        for record in self.logs[at]:
            assert state.apply(record, None if record.is_control else decode(record.key, record.value)) == ()
        return state

    def group(self, group_id: str = GROUP) -> ClassicGroup:
        """The live group."""
        found = self.shard.context.find(group_id)
        assert found is not None
        return found

    @property
    def state(self) -> ClassicGroupState:
        return self.group().state

    def _member_id(self, prefix: str) -> str:
        self.ids += 1
        return f"{prefix}-{self.ids}"

    def _take(self, shard: GroupCoordinatorShard, result: CoordinatorResult) -> None:
        for answer in result.answers:
            assert isinstance(answer.reply, Call)
            answer.reply.answers.append(answer.response)
            assert len(answer.reply.answers) == 1, f"answered twice: {answer.reply.request}"
        for write in result.writes:
            self.written += write.records
            if self.hold:
                self.held.append((shard.partition, write))
            else:
                self._append(shard, write)

    def _append(self, shard: GroupCoordinatorShard, write: Write) -> None:
        if self.append_error is not None:
            self._take(shard, shard.append_failed(write, self.append_error, self.now_ms))
            return
        log = self.logs[shard.partition]
        base = len(log)
        producer_id, epoch = (-1, -1) if write.producer is None else write.producer
        if write.control_type is not None:
            key = control_key(write.control_type)
            log.append(LogRecord(shard.partition, base, self.now_ms, key, b"", producer_id, epoch, True, True, base))
        for offset, record in enumerate(write.records, base):
            key, value = encode(record)
            in_transaction = write.producer is not None
            log.append(
                LogRecord(shard.partition, offset, self.now_ms, key, value, producer_id, epoch, in_transaction, False, base)
            )
        self._take(shard, shard.appended(write, base, self.now_ms))

    # ---- requests

    def knows(self, api: AnyApi, what: str) -> bool:
        """Whether requests of the era can express this."""
        brokers = api.versions.brokers.get(self.era)
        return brokers is not None and api.has_field(brokers[-1], what)

    def instance(self, name: str | None) -> str | None:
        return name if self.knows(apis.JOIN_GROUP, "group_instance_id") else None

    def join(
        self,
        member_id: str = "",
        *,
        group: str = GROUP,
        instance: str | None = None,
        protocol_type: str = CONSUMER,
        protocols: tuple[Protocol, ...] = RANGE,
        session_ms: int = TIMEOUT_MS,
        rebalance_ms: int = TIMEOUT_MS,
        known: bool = False,
        skip: bool = True,
    ) -> Call:
        request = JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            protocol_type=protocol_type,
            protocols=protocols,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms if self.knows(apis.JOIN_GROUP, "rebalance_timeout_ms") else session_ms,
            group_instance_id=self.instance(instance),
            client_id="clientId",
            client_host="clientHost",
            require_known_member_id=known and self.knows(apis.JOIN_GROUP, "require_known_member_id"),
            supports_skipping_assignment=skip and self.knows(apis.JOIN_GROUP, "supports_skipping_assignment"),
        )
        return self.send(request)

    def joined(self, member_id: str = "", **more: Any) -> Any:
        """Join, wait for the initial rebalance delay, and return the response."""
        call = self.join(member_id, **more)
        self.advance(DELAY_MS + 1)
        return call.response

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        group: str = GROUP,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Call:
        request = SyncGroupRequest(
            group,
            generation,
            member_id,
            self.instance(instance),
            protocol_type,
            protocol_name,
            {} if assignments is None else assignments,
        )
        return self.send(request)

    def heartbeat(self, member_id: str, generation: int, *, group: str = GROUP, instance: str | None = None) -> ErrorCode:
        return self.send(HeartbeatRequest(group, generation, member_id, self.instance(instance))).error

    def leave(self, *members: LeavingMember | str, group: str = GROUP) -> Any:
        leaving = tuple(LeavingMember(member) if isinstance(member, str) else member for member in members)
        return self.send(LeaveGroupRequest(group, leaving)).response

    def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetToCommit],
        member_id: str = "",
        generation: int = -1,
        *,
        group: str = GROUP,
        instance: str | None = None,
        retention_ms: int = -1,
    ) -> Call:
        request = OffsetCommitRequest(group, to_commit(offsets), member_id, generation, self.instance(instance), retention_ms)
        return self.send(request)

    def commit_in_transaction(
        self,
        producer_id: int,
        offsets: Mapping[TopicPartition, int | OffsetToCommit],
        member_id: str = "",
        generation: int = -1,
        *,
        group: str = GROUP,
        instance: str | None = None,
    ) -> Call:
        producer = ProducerEpoch(producer_id, 2)
        return self.send(
            TxnOffsetCommitRequest(group, "transactional-id", producer, to_commit(offsets), member_id, generation, instance)
        )

    def end_transaction(self, producer_id: int, control_type: ControlType, partition: int | None = None) -> ErrorCode:
        at = self.partition if partition is None else partition
        return self.send(TxnMarkerRequest(ProducerEpoch(producer_id, 2), control_type), at).error

    def fetch(self, *partitions: TopicPartition, group: str = GROUP, stable: bool = True) -> Any:
        """OffsetFetch; without partitions, of all of them."""
        return self.ask_for_offsets(*partitions, group=group, stable=stable).response

    def ask_for_offsets(self, *partitions: TopicPartition, group: str = GROUP, stable: bool = True) -> Call:
        """OffsetFetch that may be parked."""
        stable = stable and self.knows(apis.OFFSET_FETCH, "require_stable")
        return self.send(OffsetFetchRequest(group, partitions or None, stable))

    def fetched(self, *partitions: TopicPartition, group: str = GROUP) -> dict[TopicPartition, int]:
        return {partition: found.offset for partition, found in self.fetch(*partitions, group=group).offsets.items()}

    def delete_offsets(self, *partitions: TopicPartition, group: str = GROUP) -> Any:
        return self.send(OffsetDeleteRequest(group, partitions)).response

    def describe(self, group: str = GROUP, *, missing_is_error: bool = False) -> Any:
        return self.send(DescribeGroupRequest(group, missing_is_error)).response

    def list(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> Any:
        return self.send(ListGroupsRequest(frozenset(states), frozenset(types)), self.partition).response

    def delete(self, group: str = GROUP) -> Call:
        return self.send(DeleteGroupRequest(group))

    # ---- situations

    def dead_group(self, group: str = GROUP) -> None:
        """A group that is being deleted: the log has not taken its tombstones yet, and never will here."""
        assert set(self.commit({TopicPartition("t", 0): 1}, group=group).response.errors.values()) == {ErrorCode.NONE}
        self.hold = True
        self.delete(group)
        assert self.group(group).state is ClassicGroupState.DEAD

    def stable_member(self, **more: Any) -> Any:
        """The JoinGroup response of one dynamic member, alone in a Stable group."""
        joined = self.joined(**more)
        assert joined.error is ErrorCode.NONE
        group = more.get("group", GROUP)
        assert self.sync(joined.member_id, joined.generation, {joined.member_id: b""}, group=group).error is ErrorCode.NONE
        return joined

    def two_joined(self, first_id: str) -> tuple[Any, Any]:
        """The JoinGroup responses of both members, after a second member has joined a Stable group and the first has rejoined."""
        second = self.join()
        first = self.join(first_id)
        return first.response, second.response

    def static_pair(self, session_ms: int = TIMEOUT_MS) -> tuple[int, str, str]:
        """Two static members in a Stable group: generation, member id of the leader, member id of the follower."""
        calls = [self.join(instance=name, protocols=RANGE_OR_ROUND_ROBIN, session_ms=session_ms) for name in (LEADER, FOLLOWER)]
        self.advance(DELAY_MS + 1)
        self.advance(DELAY_MS + 1)
        leader, follower = (call.response for call in calls)
        assert (leader.error, follower.error) == (ErrorCode.NONE, ErrorCode.NONE)
        assignments = {leader.member_id: b"of leader", follower.member_id: b"of follower"}
        assert self.sync(leader.member_id, 1, assignments).error is ErrorCode.NONE
        assert self.sync(follower.member_id, 1).error is ErrorCode.NONE
        assert self.state is ClassicGroupState.STABLE
        return 1, leader.member_id, follower.member_id


def to_commit(offsets: Mapping[TopicPartition, int | OffsetToCommit]) -> dict[TopicPartition, OffsetToCommit]:
    """Commits of plain numbers, which stand for offsets without metadata or leader epoch."""
    return {p: OffsetToCommit(offset) if isinstance(offset, int) else offset for p, offset in offsets.items()}


def errors(response: Response) -> set[ErrorCode]:
    """The errors of all partitions."""
    assert isinstance(response, OffsetCommitResponse | OffsetDeleteResponse)
    return set(response.errors.values())
