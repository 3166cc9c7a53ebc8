"""A member of a classic group as a state machine (`AbstractCoordinator`, `ConsumerCoordinator`)."""

from collections.abc import Collection, Mapping
from enum import Enum

from coordinator_core.assignors import (
    Assignment,
    AssignmentFailed,
    Cluster,
    Subscription,
    assign_group,
    read_assignment,
    read_subscription,
    rebalance_protocol,
    subscription_bytes,
)
from coordinator_core.codec import Malformed
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.member import error_actions
from coordinator_core.member.auto_commit import AutoCommit
from coordinator_core.member.effects import Effects, Event, MemberFailed, OffsetsCommitted, OffsetsFetched
from coordinator_core.member.error_actions import ErrorAction, ErrorActions
from coordinator_core.member.owned import OwnedPartitions
from coordinator_core.member.settings import CONSUMER, MemberSettings
from coordinator_core.protocol.api import Request, Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import FindCoordinatorRequest, FindCoordinatorResponse, Node
from coordinator_core.protocol.membership import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_core.protocol.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetToCommit,
)


class MemberState(Enum):
    """`AbstractCoordinator.MemberState`, and two final states."""

    UNJOINED = "unjoined"
    PREPARING_REBALANCE = "preparing rebalance"
    COMPLETING_REBALANCE = "completing rebalance"
    STABLE = "stable"
    LEFT = "left"
    FAILED = "failed"


_OVER = (MemberState.LEFT, MemberState.FAILED)
_HEARD = (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)


class GroupMember:
    """A member that joins its group and keeps its membership. The owner of clock and sockets calls

    - `wake` when `next_wake` has passed, and after `subscribe` and `update_metadata`;
    - `receive` with every response and its request;
    - `disconnected` when the connection to the coordinator breaks, or a request times out: no response may follow;

    and sends the requests that these return, in order, on one connection; FindCoordinator may be sent to any broker. At most one
    request of a rebalance and one heartbeat are in flight; the number of commits and fetches is up to the caller.

    An application that reports its positions (`consumed`) has them committed, by the interval and before partitions are revoked.
    An application that reports its polls (`polled`) leaves the group when max.poll.interval.ms passes without one.
    """

    def __init__(self, settings: MemberSettings, topics: Collection[str], metadata: Cluster) -> None:
        """Raises AssignmentFailed if the assignors have no rebalance protocol in common."""
        self.settings, self.metadata = settings, metadata
        self.topics = frozenset(topics)
        self.assignors = settings.assignors
        self.state = MemberState.UNJOINED
        self.member_id, self.generation = UNKNOWN_MEMBER_ID, NO_GENERATION
        self.coordinator: Node | None = None
        self._owned = OwnedPartitions(rebalance_protocol(settings.assignors))
        self._protocol_name = ""
        self._rejoin, self._prepared, self._stalled = True, False, False
        self._led: Mapping[str, int] | None = None
        self._rebalancing: Request | None = None
        self._heartbeat: HeartbeatRequest | None = None
        self._retry_at = self._next_heartbeat = self._session_ends_at = 0
        self._auto_commit = AutoCommit(settings.auto_commit_interval_ms if settings.enable_auto_commit else None)
        self._polls_end_at: int | None = None
        self._events: list[Event] = []
        self._requests: list[Request] = []

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        """The partitions that the member owns."""
        return self._owned.partitions

    @property
    def is_leader(self) -> bool:
        """True if the member was the leader in its last JoinGroup response (`isLeader`)."""
        return self._led is not None

    def next_wake(self) -> int | None:
        """Returns the time at which to call `wake`, in ms, 0 for now; None while only a response can change the state."""
        if self.state in _OVER or self._stalled:
            return None
        if self._rebalancing is None and (self.coordinator is None or self._rejoin):
            return self._retry_at
        if self.state not in _HEARD or self.coordinator is None:
            return None
        commit_at = self._auto_commit.due_at() if self.state is MemberState.STABLE else None
        due = (self._session_ends_at, None if self._heartbeat else self._next_heartbeat, commit_at, self._polls_end_at)
        return min(at for at in due if at is not None)

    def wake(self, now_ms: int) -> Effects:
        """Returns the requests and events that are due."""
        if self.state in _HEARD and self.coordinator is not None and now_ms >= self._session_ends_at:
            self._forget_coordinator(now_ms)
        if self.state in _HEARD and self._polls_end_at is not None and now_ms >= self._polls_end_at:
            self._stall()
        self._proceed(now_ms)
        return self._effects()

    def receive(self, request: Request, response: Response, now_ms: int) -> Effects:
        """Handles the response to a request; a stale one is ignored."""
        if self.state not in _OVER:
            self._take(request, response, now_ms)
            self._proceed(now_ms)
        return self._effects()

    def disconnected(self, now_ms: int) -> Effects:
        """Drops all requests in flight, and finds the coordinator again."""
        if self.state not in _OVER:
            self._forget_coordinator(now_ms)
        return self._effects()

    def subscribe(self, topics: Collection[str]) -> None:
        """Replaces the subscribed topics; the member rejoins if they have changed."""
        self._rejoin |= self.topics != frozenset(topics)
        self.topics = frozenset(topics)

    def update_metadata(self, metadata: Cluster) -> None:
        """Replaces the metadata. The leader rejoins, and so starts a rebalance, if the partition count of a topic has changed."""
        self.metadata = metadata
        self._rejoin |= self._led is not None and self._counts(self._led) != self._led

    def consumed(self, positions: Mapping[TopicPartition, OffsetToCommit]) -> None:
        """Reports the application's positions for automatic commits (enable.auto.commit)."""
        self._auto_commit.note(positions, self.owned)

    def polled(self, now_ms: int) -> None:
        """Reports a poll of the application. A member that left for missing polls joins again; call `wake` after this."""
        self._polls_end_at = now_ms + self.settings.rebalance_timeout_ms
        self._stalled = False

    def commit(self, offsets: Mapping[TopicPartition, OffsetToCommit]) -> OffsetCommitRequest:
        """Returns a commit with the current member id and generation."""
        settings = self.settings
        return OffsetCommitRequest(settings.group_id, offsets, self.member_id, self.generation, settings.group_instance_id)

    def fetch(self, partitions: tuple[TopicPartition, ...] | None) -> OffsetFetchRequest:
        """Returns a request for stable committed offsets (KIP-447)."""
        return OffsetFetchRequest(self.settings.group_id, partitions, True)

    def leave(self) -> Effects:
        """Ends the membership for good. A static member sends no LeaveGroup: its session times out (KIP-345)."""
        if self.state is MemberState.STABLE:
            self._commit_positions()
            self._events += self._owned.give_up()
        else:
            self._events += self._owned.lose()
        if self.settings.leave_group_on_close and self.state not in _OVER:
            self._leave_group("the consumer is being closed")
        self.state = MemberState.LEFT
        self._rebalancing = self._heartbeat = None
        return self._effects()

    def _proceed(self, now_ms: int) -> None:
        if self.state in _OVER or self._stalled:
            return
        if self.coordinator is None:
            if self._rebalancing is None and now_ms >= self._retry_at:
                self._rebalance(FindCoordinatorRequest((self.settings.group_id,)))
        elif self._rejoin and self._rebalancing is None:
            if now_ms >= self._retry_at:
                self._join()
        elif self.state in _HEARD and self._heartbeat is None and now_ms >= self._next_heartbeat:
            settings = self.settings
            self._heartbeat = HeartbeatRequest(settings.group_id, self.generation, self.member_id, settings.group_instance_id)
            self._requests.append(self._heartbeat)
            self._next_heartbeat = now_ms + settings.heartbeat_interval_ms
        commit_at = self._auto_commit.due_at()
        if self.state is MemberState.STABLE and self.coordinator is not None and commit_at is not None and now_ms >= commit_at:
            self._commit_positions()
            self._auto_commit.begin(now_ms)

    def _commit_positions(self) -> None:
        if self._auto_commit.positions and self.coordinator is not None:
            self._requests.append(self.commit(self._auto_commit.positions))

    def _leave_group(self, reason: str) -> None:
        if self.coordinator is not None and self.member_id != UNKNOWN_MEMBER_ID and self.settings.group_instance_id is None:
            leaving = LeavingMember(self.member_id, None, reason)
            self._requests.append(LeaveGroupRequest(self.settings.group_id, (leaving,)))

    def _stall(self) -> None:
        """Leaves the group because the application has stopped polling, so that other members get its partitions."""
        self._events += self._owned.lose()
        self._leave_group("consumer poll timeout has expired")
        self._start_over(self.member_id if self.settings.group_instance_id is not None else UNKNOWN_MEMBER_ID)
        self._heartbeat, self._polls_end_at, self._stalled = None, None, True

    def _rebalance(self, request: Request) -> None:
        self._rebalancing = request
        self._requests.append(request)

    def _join(self) -> None:
        if not self._prepared:
            self._prepared = True
            kept = self.generation != NO_GENERATION and self.member_id != UNKNOWN_MEMBER_ID
            if kept:
                self._commit_positions()
            self._events += self._owned.prepare_to_join(self.topics) if kept else self._owned.lose()
            self._auto_commit.keep(self.owned)
        self.state = MemberState.PREPARING_REBALANCE
        self._rejoin, self._led = False, None
        settings = self.settings
        self._rebalance(
            JoinGroupRequest(
                settings.group_id,
                self.member_id,
                CONSUMER,
                tuple(Protocol(assignor.name, self._subscription(index)) for index, assignor in enumerate(self.assignors)),
                settings.session_timeout_ms,
                settings.rebalance_timeout_ms,
                settings.group_instance_id,
                settings.client_id,
            )
        )

    def _subscription(self, index: int) -> bytes:
        user_data = self.assignors[index].subscription_user_data(self.topics)
        topics = tuple(sorted(self.topics))
        return subscription_bytes(Subscription(topics, user_data, self._owned.partitions, self.generation, self.settings.rack_id))

    def _take(self, request: Request, response: Response, now_ms: int) -> None:
        match response:
            case FindCoordinatorResponse() if request is self._rebalancing:
                self._take_found(response, now_ms)
            case JoinGroupResponse() if request is self._rebalancing:
                self._take_joined(response, now_ms)
            case SyncGroupResponse() if request is self._rebalancing:
                self._take_synced(response, now_ms)
            case HeartbeatResponse() if request is self._heartbeat:
                self._heartbeat = None
                self._heard(response.error, now_ms)
            case OffsetCommitResponse() if isinstance(request, OffsetCommitRequest):
                self._take_committed(request, response, now_ms)
            case OffsetFetchResponse():
                if response.error in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR):
                    self._forget_coordinator(now_ms)
                self._events.append(OffsetsFetched(response.error, response.offsets))

    def _take_found(self, response: FindCoordinatorResponse, now_ms: int) -> None:
        self._rebalancing = None
        found = response.coordinators[0]
        if found.error is ErrorCode.NONE:
            self.coordinator = found.node
            self._session_ends_at = now_ms + self.settings.session_timeout_ms
        else:
            self._act_on("FindCoordinator", found.error, error_actions.FIND, now_ms)

    def _take_joined(self, response: JoinGroupResponse, now_ms: int) -> None:
        self._rebalancing = None
        if response.error is not ErrorCode.NONE:
            self._rejoin = True
            self._act_on("JoinGroup", response.error, error_actions.JOIN, now_ms, response.member_id)
            return
        self.state = MemberState.COMPLETING_REBALANCE
        self.member_id, self.generation = response.member_id, response.generation
        self._protocol_name = response.protocol_name or ""
        self._session_ends_at = now_ms + self.settings.session_timeout_ms
        self._next_heartbeat = now_ms + self.settings.heartbeat_interval_ms
        try:
            assignments = self._assign(response) if response.leader == response.member_id else {}
        except AssignmentFailed as failure:
            self._fail(str(failure))
            return
        settings = self.settings
        self._rebalance(
            SyncGroupRequest(
                settings.group_id,
                self.generation,
                self.member_id,
                settings.group_instance_id,
                CONSUMER,
                self._protocol_name,
                assignments,
            )
        )

    def _assign(self, response: JoinGroupResponse) -> dict[str, bytes]:
        subscriptions = [read_subscription(member.metadata) for member in response.members]
        topics = {topic for each in subscriptions if not isinstance(each, Malformed) for topic in each.topics}
        self._led = self._counts(topics)
        return (
            {} if response.skip_assignment else assign_group(self._protocol_name, self.assignors, self.metadata, response.members)
        )

    def _counts(self, topics: Collection[str]) -> Mapping[str, int]:
        return {topic: len(self.metadata.topics.get(topic, ())) for topic in topics}

    def _take_synced(self, response: SyncGroupResponse, now_ms: int) -> None:
        self._rebalancing = None
        if response.error is not ErrorCode.NONE:
            self._rejoin = True
            self._act_on("SyncGroup", response.error, error_actions.SYNC, now_ms)
            return
        assignment = read_assignment(response.assignment)
        if isinstance(assignment, Malformed):
            self._fail(f"assignment of generation {self.generation}: {assignment.reason}")
            return
        self.state = MemberState.STABLE
        self._prepared = False
        if all(partition.topic in self.topics for partition in assignment.partitions):
            self._own(assignment)
            self._auto_commit.begin(now_ms)
        else:
            self._rejoin = True

    def _own(self, assignment: Assignment) -> None:
        had = set(self._owned.partitions)
        self._events += self._owned.take(assignment.partitions)
        self._auto_commit.keep(self.owned)
        self._rejoin |= not had <= set(assignment.partitions)
        self.assignors = tuple(
            assignor.on_assignment(assignment, self.generation) if assignor.name == self._protocol_name else assignor
            for assignor in self.assignors
        )

    def _heard(self, error: ErrorCode, now_ms: int) -> None:
        if error is ErrorCode.NONE:
            self._session_ends_at = now_ms + self.settings.session_timeout_ms
        else:
            self._act_on("Heartbeat", error, error_actions.HEARTBEAT, now_ms)

    def _take_committed(self, request: OffsetCommitRequest, response: OffsetCommitResponse, now_ms: int) -> None:
        same = (request.member_id, request.generation) == (self.member_id, self.generation)
        for error in sorted(set(response.errors.values())):
            if error in error_actions.COMMIT and (same or error_actions.COMMIT[error] is ErrorAction.FIND_COORDINATOR):
                self._act_on("OffsetCommit", error, error_actions.COMMIT, now_ms)
                break
        self._events.append(OffsetsCommitted(response.errors))

    def _act_on(self, api: str, error: ErrorCode, known: ErrorActions, now_ms: int, member_id: str = "") -> None:
        match known.get(error):
            case None:
                self._fail(f"{api} of group {self.settings.group_id!r} failed: {error.name}", error)
            case ErrorAction.RETRY_NOW:
                self._retry_at = now_ms
            case ErrorAction.RETRY_LATER:
                self._retry_at = now_ms + self.settings.retry_backoff_ms
            case ErrorAction.FIND_COORDINATOR:
                self._forget_coordinator(now_ms)
            case ErrorAction.REJOIN:
                self._rejoin |= self.state is MemberState.STABLE
            case ErrorAction.TAKE_ID:
                self.member_id = member_id
            case ErrorAction.NEW_GENERATION:
                self._start_over(self.member_id)
            case ErrorAction.NEW_MEMBER:
                self._start_over(UNKNOWN_MEMBER_ID)

    def _start_over(self, member_id: str) -> None:
        self.state = MemberState.UNJOINED
        self.member_id, self.generation = member_id, NO_GENERATION
        self._rebalancing, self._rejoin, self._prepared = None, True, False

    def _forget_coordinator(self, now_ms: int) -> None:
        """Drops the coordinator and the requests in flight, whose responses are lost with its connection."""
        self.coordinator = self._heartbeat = None
        if self._rebalancing is not None:
            self._rebalancing, self._rejoin = None, True
        self._retry_at = now_ms + self.settings.retry_backoff_ms

    def _fail(self, problem: str, error: ErrorCode | None = None) -> None:
        self.state = MemberState.FAILED
        self._rebalancing = self._heartbeat = None
        self._events += [*self._owned.lose(), MemberFailed(problem, error)]

    def _effects(self) -> Effects:
        effects = Effects(tuple(self._events), tuple(self._requests))
        self._events, self._requests = [], []
        return effects
