"""Nodes that share a log partition, with assignments, requests, crashes, pauses and lost, late or repeated messages in any order.

The nodes are the product's: service, partition loop, shard, membership, load, `OwnedPartition`. The brokers are a model
(`modelled_brokers`), and so are the clients of the brokers (`modelled_clients`). Every request to the brokers, every start of a
load or append, and every turn of a node's event loop is a step; a node crashes or freezes between any two.

After every step:

- what was acknowledged belongs to a transaction that the brokers had decided to commit before the acknowledgement, and before
  another owner was granted the partition;
- transactions of an owner are not behind those of a later one;
- the state of the owner is what the committed records load to; no node shows anything else that was not committed;
- generations of a group that were acknowledged are in the state of the owner, or higher ones.

In the end, once messages arrive and the group of the nodes has settled, the node that owns the partition serves it.
"""

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from modelled_brokers import Phase
from modelled_clients import Fate
from stepped_node import CONFIG, SteppedNode
from stepped_nodes import GROUP, PLACES, SteppedNodes

from coordinator_core.codec import decode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import LogRecord
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import JoinGroupRequest, Protocol, SyncGroupRequest
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetToCommit, ProducerEpoch
from coordinator_core.state.classic_group import LoadedClassicGroup
from coordinator_core.state.group_state import GroupState

MEMBERS = "members"
#: The partition must be served after this time, once nothing fails any more.
_SECONDS = 40

which = st.integers(0, 5)
milliseconds = st.sampled_from([0, 4, 4, 600, 2_000])
fates = st.sampled_from([*[Fate.ANSWERED] * 6, *Fate])


def producer_of(record: LogRecord) -> ProducerEpoch:
    return ProducerEpoch(record.producer_id, record.producer_epoch)


class OwnersOfALogPartition(RuleBasedStateMachine):
    """Defects that were planted, and what failed within 250 examples:

    | defect | what failed |
    |---|---|
    | requests are answered before the transaction is committed | `the_owner_has_what_is_committed` |
    | requests of a failed append are answered as if it had succeeded | `nothing_is_acknowledged_wrongly` |
    | a load asks for the end of the log before it fences | `the_owner_has_what_is_committed` |
    | a load reads with read_uncommitted | `the_owner_has_what_is_committed` |
    | state is kept after a failed append | `settle`: the owner serves nothing |
    | a fenced owner that the group still names does not load again | `settle`: the owner serves nothing |
    | a load does not wait for the one that was abandoned | `the_owner_has_what_is_committed` |
    | writes from before a revocation are appended behind the next load | `the_owner_has_what_is_committed` |
    """

    def __init__(self) -> None:
        super().__init__()
        self.at: SteppedNodes | None = None
        self.assigned_to: SteppedNode | None = None
        self.offset = 0
        self.acknowledged: list[int] = []
        self.wrongly: list[str] = []
        self.joined: tuple[str, int] | None = None
        self.generation = 0

    @initialize(count=st.integers(2, 3), batch_records=st.sampled_from([1, 100]), append_seconds=st.sampled_from([0.0, 3600.0]))
    def start(self, count: int, batch_records: int, append_seconds: float) -> None:
        self.at = SteppedNodes(count, batch_records, append_seconds)
        self.coordinator, self.network = self.at.coordinator, self.at.network
        self.take_over(0, 12)

    @property
    def nodes(self) -> list[SteppedNode]:
        return [] if self.at is None else self.at.nodes

    def node(self, number: int) -> SteppedNode:
        return self.nodes[number % len(self.nodes)]

    # ---- the group of the nodes: its events arrive late, in any order, twice or never

    @rule(number=which)
    def assign(self, number: int) -> None:
        self.assigned_to = self.node(number)
        self.assigned_to.membership.assigned([0])

    @rule(number=which)
    def revoke(self, number: int) -> None:
        if self.assigned_to is self.node(number):
            self.assigned_to = None
        self.node(number).membership.revoked([0])

    @rule(number=which, owner=which)
    def describe(self, number: int, owner: int) -> None:
        self.node(number).membership.described([each.own for each in self.nodes], {0: self.node(owner).own})

    @rule(number=which, rounds=st.sampled_from([2, 6, 12, 12]))
    def take_over(self, number: int, rounds: int) -> None:
        self.assign(number)
        self.work(number, rounds)

    @rule(number=which, rounds=st.integers(1, 8))
    def take_over_while_owners_commit(self, number: int, rounds: int) -> None:
        self.take_over(number, rounds)
        for other, node in enumerate(self.nodes):
            if node.status == "active":
                self.commit(other, {PLACES[0]}, (), 8)
        self.work(number, 12)

    @rule(number=which, has_waited=st.booleans())
    def lose_and_take_over(self, number: int, has_waited: bool) -> None:
        """With `has_waited` an earlier load is still waiting for a thread."""
        self.revoke(number)
        self.turn(number, 0)
        if has_waited:
            self.assign(number)
            self.turn(number, 0)
            self.stall(number)
            self.revoke(number)
            self.turn(number, 0)
        self.take_over(number, 12)

    # ---- clients

    @rule(
        number=which,
        places=st.sets(st.sampled_from(PLACES), min_size=1),
        failures=st.just([]) | st.lists(fates, max_size=8),
        rounds=st.sampled_from([0, 0, 2, 8, 8]),
    )
    def commit(self, number: int, places: set[TopicPartition], failures: Sequence[Fate], rounds: int) -> None:
        self.offset += 1
        offset = self.offset

        def received(response: Any) -> None:
            if set(response.errors.values()) == {ErrorCode.NONE}:
                self.note_acknowledged(offset, len(places))

        self.node(number).send(OffsetCommitRequest(GROUP, {place: OffsetToCommit(offset) for place in sorted(places)}), received)
        self.work_with_failures(number, 0, failures)
        self.work(number, rounds)

    @rule(number=which, again=st.booleans())
    def join(self, number: int, again: bool) -> None:
        member_id = self.joined[0] if self.joined is not None and again else ""

        def received(response: Any) -> None:
            if response.error is ErrorCode.NONE:
                self.joined = response.member_id, response.generation

        protocols = (Protocol("range", b"s"),)
        request = JoinGroupRequest(
            MEMBERS, member_id, "consumer", protocols, 10_000, 10_000, client_id="c", require_known_member_id=False
        )
        self.node(number).send(request, received)
        self.work(number, 2)

    @precondition(lambda self: self.joined is not None)
    @rule(number=which, rounds=st.sampled_from([0, 2, 4, 8]))
    def sync(self, number: int, rounds: int) -> None:
        assert self.joined is not None
        member_id, generation = self.joined

        def received(response: Any) -> None:
            if response.error is ErrorCode.NONE:
                self.generation = max(self.generation, generation)

        self.node(number).send(SyncGroupRequest(MEMBERS, generation, member_id, assignments={member_id: b"a"}), received)
        self.work(number, rounds)

    # ---- steps

    @rule(number=which, call=which, failures=st.lists(fates, min_size=1, max_size=8))
    def work_with_failures(self, number: int, call: int, failures: Sequence[Fate]) -> None:
        """Let one call of a node take steps, whose requests have these fates."""
        node = self.node(number)
        for fate in failures:
            self.turn(number, 4)
            if node.waiting and not node.is_frozen:
                node.waiting[call % len(node.waiting)].step(fate)

    @rule(number=which, ms=milliseconds)
    def turn(self, number: int, ms: int) -> None:
        assert self.at is not None
        self.at.seconds += ms / 1000
        if not self.node(number).is_frozen:
            self.node(number).loop.turn()

    @rule(number=which, rounds=st.integers(1, 12))
    def work(self, number: int, rounds: int) -> None:
        assert self.at is not None
        self.at.work(self.node(number), rounds)

    @precondition(lambda self: self.network.late)
    @rule(request=which)
    def deliver(self, request: int) -> None:
        self.network.deliver(request % len(self.network.late))

    # ---- faults

    @rule(number=which)
    def freeze_or_wake(self, number: int) -> None:
        self.node(number).is_frozen = not self.node(number).is_frozen

    @rule(number=which)
    def stall(self, number: int) -> None:
        """Let the calls of a node wait where they are; later ones run in other threads."""
        for call in self.node(number).waiting:
            call.is_stalled = True

    @rule(number=which)
    def resume(self, number: int) -> None:
        self.resumed(self.node(number))
        self.work(number, 6)

    def resumed(self, node: SteppedNode) -> None:
        for call, _ in node.loop.calls:
            call.is_stalled = False

    @rule(number=which)
    def crash(self, number: int) -> None:
        assert self.at is not None
        if self.assigned_to is self.node(number):
            self.assigned_to = None
        self.at.restart(number % len(self.nodes))

    # ---- the brokers

    @rule(event=st.sampled_from(["markers", "time_out", "forget", "replicate", "elect", "compact"]))
    def event_of_brokers(self, event: str) -> None:
        partition = self.coordinator.partition
        match event:
            case "markers":
                self.coordinator.write_markers(0)
            case "time_out":
                self.coordinator.time_out()
            case "forget":
                self.coordinator.forget()
            case "replicate":
                partition.replicate()
            case "elect":
                partition.elect()
            case "compact":
                partition.compact()

    # ---- invariants

    @property
    def committed(self) -> list[LogRecord]:
        """Records of transactions that are committed, or decided to be."""
        partition = self.coordinator.partition
        records = partition.committed(partition.everything, partition.end)
        if self.coordinator.phase is Phase.PREPARE_COMMIT:
            assert self.coordinator.producer is not None
            open_from = partition.producers[self.coordinator.producer.producer_id].open_from
            records += [] if open_from is None else [each for each in partition.everything if each.offset >= open_from]
        return records

    def note_acknowledged(self, offset: int, count: int) -> None:
        """Note it; an assertion would be an error of the product, in whose event loop this is called."""
        of_commit = [record for record in self.committed if self.offset_of(record) == offset]
        if len(of_commit) < count:
            self.wrongly.append(f"offset {offset} is acknowledged and not committed")
        for record in of_commit:
            before = [grants for producer, grants in self.coordinator.commits if producer == producer_of(record)]
            if producer_of(record) != self.coordinator.grants[before[-1] - 1]:
                self.wrongly.append(f"offset {offset} is acknowledged and was committed after the fence of another owner")
        self.acknowledged.append(offset)

    @invariant()
    def nothing_is_acknowledged_wrongly(self) -> None:
        assert self.wrongly == []

    def offset_of(self, record: LogRecord) -> int | None:
        """The offset that a client committed with the record."""
        decoded = decode(record.key, record.value)
        if isinstance(getattr(decoded, "key", None), OffsetCommitKey):
            value = getattr(decoded, "value", None)
            return value.offset if isinstance(value, OffsetCommitValue) else None
        return None

    @invariant()
    @precondition(lambda self: self.nodes)
    def what_was_acknowledged_stays_committed(self) -> None:
        found = {self.offset_of(record) for record in self.committed}
        assert set(self.acknowledged) <= found

    @invariant()
    @precondition(lambda self: self.nodes)
    def owners_write_one_after_another(self) -> None:
        numbers = [self.coordinator.grants.index(producer_of(record)) for record in self.committed]
        assert numbers == sorted(numbers)

    @invariant()
    @precondition(lambda self: self.nodes)
    def the_owner_has_what_is_committed(self) -> None:
        found = {self.offset_of(record) for record in self.committed}
        for node in self.nodes:
            if node.status != "active":
                continue
            state = node.shard.context.state
            assert {each.offset for each in state.committed(GROUP).values()} <= found
            producer = node.producer
            if node.is_busy or producer is None or producer.granted != self.coordinator.producer:
                continue
            assert state.snapshot() == self.loaded(state.now_ms).snapshot()
            group = state.registry.groups.get(MEMBERS)
            assert self.generation == 0 or (isinstance(group, LoadedClassicGroup) and group.value.generation >= self.generation)

    def loaded(self, now_ms: int) -> GroupState:
        state = GroupState(CONFIG.rules, now_ms, CONFIG.offsets_retention_ms)
        for record in self.committed:
            plain = record._replace(producer_id=-1, producer_epoch=-1, is_transactional=False)
            assert state.apply(plain, decode(record.key, record.value)) == ()
        return state

    @invariant()
    def nothing_unexpected(self) -> None:
        for node in self.nodes:
            assert (node.heard.bugs, node.heard.failures) == ([], [])

    # ---- the end

    def teardown(self) -> None:
        """Require that the node to which the group has assigned the partition serves it, once nothing fails any more."""
        if self.at is None:
            return
        try:
            self.settle(self.at)
        finally:
            self.at.close()

    def settle(self, at: SteppedNodes) -> None:
        while self.network.late:
            self.deliver(0)
        for node in self.nodes:
            node.is_frozen = False
            self.resumed(node)
        if self.assigned_to is None:
            self.assign(0)
        owner = self.assigned_to
        assert owner is not None
        for node in self.nodes:
            if node is not owner:
                node.membership.revoked([0])
        before = len(self.acknowledged)
        for _ in range(_SECONDS):
            at.second(owner)
            if owner.status == "active":
                self.commit(self.nodes.index(owner), {PLACES[0]}, (), 0)
            if len(self.acknowledged) > before:
                break
        assert len(self.acknowledged) > before, f"the partition of the owner is {owner.status}"
        self.the_owner_has_what_is_committed()


TestOwnersOfALogPartition = OwnersOfALogPartition.TestCase
TestOwnersOfALogPartition.settings = settings(
    settings.default,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
)
