"""A transaction coordinator under producers, failing writes, lost markers, clocks, crashes and fail-overs in any order.

The test plays the producers, which use the old protocol or transaction version 2, and the partitions, which may lose their
acknowledgements. After every step: each request was answered once or waits for the log; the log loads to the state of the
coordinator; the producer id and the epoch of an id never go back; a transition is pending only while its record or its markers
are under way; a partition has only markers of decisions in the log. In the end every decided transaction is completed, with a
marker in each of its partitions.
"""

from typing import NamedTuple

from coordinator_harness import Call
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from transaction_harness import TransactionHarness

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import ControlType
from coordinator_core.log.partitioner import partition_for
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import NO_PRODUCER, EndTxnRequest, InitProducerIdRequest
from coordinator_core.state.transaction_metadata import MAX_EPOCH, TransactionMetadata
from coordinator_core.state.transaction_state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from coordinator_core.transaction_coordinator.behaviour import TRANSACTION_BEHAVIOURS

PARTITION = partition_for("transactional-id", 50)
IDS = [name for name in (f"id-{number}" for number in range(300)) if partition_for(name, 50) == PARTITION][:3]
PLACES = [TopicPartition("t", number) for number in range(3)]
LOG_ERRORS = [None, None, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.MESSAGE_TOO_LARGE]
MARKER_ERRORS = [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT]
DURATIONS = [1, 100, 100, 5_000, 10_000, 70_000, 3_600_000, 8 * 24 * 3_600_000]
_DECIDED = {PREPARE_COMMIT: ControlType.COMMIT, PREPARE_ABORT: ControlType.ABORT}

ids = st.sampled_from(IDS)
places = st.lists(st.sampled_from(PLACES), min_size=1, max_size=3, unique=True)


class Decision(NamedTuple):
    """A transaction whose end is in the log, with its partitions."""

    producer: ProducerEpoch
    kind: ControlType
    start_ms: int


class TransactionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.at = TransactionHarness(era="4")
        #: What a client of each id believes its producer to be, and whether it uses transaction version 2.
        self.clients: dict[str, list[ProducerEpoch]] = {name: [] for name in IDS}
        self.read = 0
        self.decided: dict[tuple[str, Decision], frozenset[TopicPartition]] = {}
        self.markers: dict[TopicPartition, list[tuple[ProducerEpoch, ControlType]]] = {place: [] for place in PLACES}
        self.newest: dict[str, tuple[int, int]] = {}

    @initialize(era=st.sampled_from(list(TRANSACTION_BEHAVIOURS)), epoch=st.sampled_from([None, None, MAX_EPOCH - 2]))
    def start(self, era: str, epoch: int | None) -> None:
        self.at = TransactionHarness(era=era)
        if epoch is not None:
            for name in IDS:
                producer_id = self.at.producer_ids.generate()
                assert producer_id is not None
                now = TransactionMetadata(name, producer_id, epoch, 60_000, EMPTY, frozenset(), -1, self.at.now_ms)
                self.at.put(now)
                self.clients[name].append(ProducerEpoch(producer_id, epoch))

    # ---- producers

    @rule(name=ids, expected=st.booleans())
    def init(self, name: str, expected: bool) -> None:
        known = self.clients[name]
        can_expect = self.at.era in ("3", "4") and expected and known
        call = self.at.init(name, known[-1]) if can_expect else self.at.init(name)
        self.learn(name, call)

    def learn(self, name: str, call: Call) -> None:
        if call.answered and call.error is ErrorCode.NONE and call.response.producer.producer_id >= 0:
            if isinstance(call.request, InitProducerIdRequest) and call.request.producer == NO_PRODUCER:
                # one owner per epoch: a client that knows no producer gets one that no client has
                assert call.response.producer not in self.clients[name]
            self.clients[name].append(call.response.producer)

    def producer(self, name: str, back: int) -> ProducerEpoch:
        """Mostly the newest producer of the id, else one before it: a zombie."""
        known = self.clients[name]
        return known[max(len(known) - 1 - (back % 3 == 2), 0)]

    @precondition(lambda self: any(self.clients.values()))
    @rule(name=ids, back=st.integers(0, 5), partitions=places, from_broker=st.booleans())
    def add(self, name: str, back: int, partitions: list[TopicPartition], from_broker: bool) -> None:
        if self.clients[name]:
            self.at.add(self.producer(name, back), partitions, name, from_broker=from_broker and self.at.era == "4")

    @precondition(lambda self: any(self.clients.values()))
    @rule(name=ids, back=st.integers(0, 5), commit=st.booleans(), version=st.sampled_from([0, 2]))
    def end(self, name: str, back: int, commit: bool, version: int) -> None:
        if self.clients[name]:
            version = version if self.at.era == "4" else 0
            call = self.at.end(self.producer(name, back), commit=commit, version=version, transactional_id=name)
            self.learn(name, call)

    @precondition(lambda self: any(self.clients.values()))
    @rule(name=ids, partitions=places, commit=st.booleans(), version=st.sampled_from([0, 2]))
    def a_transaction(self, name: str, partitions: list[TopicPartition], commit: bool, version: int) -> None:
        """All requests of a transaction in order, by its newest producer."""
        if self.clients[name]:
            version = version if self.at.era == "4" else 0
            self.at.add(self.producer(name, 0), partitions, name, from_broker=version == 2)
            call = self.at.end(self.producer(name, 0), commit=commit, version=version, transactional_id=name)
            self.learn(name, call)

    # ---- partitions, faults and time

    @rule(error=st.sampled_from(MARKER_ERRORS), only=st.none() | places)
    def write_markers(self, error: ErrorCode, only: list[TopicPartition] | None) -> None:
        if error is ErrorCode.NONE:
            for batch in self.at.sent:
                for place in batch.partitions if only is None else batch.partitions & set(only):
                    self.markers[place].append((batch.marker.producer, batch.marker.control_type))
        self.at.acknowledge(error, only)

    @rule()
    def markers_without_acknowledgement(self) -> None:
        """The partitions have the markers, but their answers are lost with the coordinator."""
        for batch in self.at.sent:
            for place in batch.partitions:
                self.markers[place].append((batch.marker.producer, batch.marker.control_type))
        self.restart()

    @rule(ms=st.sampled_from(DURATIONS))
    def wait(self, ms: int) -> None:
        self.at.advance(ms)

    @rule()
    def hold(self) -> None:
        self.at.hold = True

    @rule(error=st.sampled_from(LOG_ERRORS))
    def release(self, error: ErrorCode | None) -> None:
        self.at.append_error = error
        self.at.release()
        self.at.append_error = None
        for call in self.at.calls:
            if isinstance(call.request, InitProducerIdRequest | EndTxnRequest) and call.request.transactional_id is not None:
                known = self.clients[call.request.transactional_id]
                if call.answered and call.error is ErrorCode.NONE and call.response.producer not in known:
                    self.learn(call.request.transactional_id, call)

    @rule(moves=st.sampled_from([None, None, None, False, True]))
    def crash(self, moves: bool | None) -> None:
        """Crash the process, or let another coordinator lead the log partition for a while."""
        if moves is None:
            return
        if moves:
            shard = self.at.shard
            answered = {answer.reply for answer in shard.unload(self.at.epoch + 1, self.at.now_ms).answers}
            assert {call for call in self.at.calls if not call.answered} == answered
        self.restart()

    def restart(self) -> None:
        self.at.crash()
        self.at.hold = False

    # ---- invariants

    @invariant()
    def the_log_loads_to_what_the_coordinator_has(self) -> None:
        loaded, version = self.at.loaded(), self.at.config.behaviour.value_version
        assert loaded == self.at.shard.context.cache.metadata()
        live = self.at.shard.context.live
        assert set(loaded) <= set(live)
        for name, now in live.items():
            if name not in loaded:
                assert now.metadata.producer_epoch == -1
                continue
            logged = now.metadata.as_logged(version)
            # acknowledged partitions, and the epoch of a fence that the log has refused, are not logged
            assert logged.partitions <= loaded[name].partitions
            assert logged.state is loaded[name].state
            assert logged.producer_id == loaded[name].producer_id
            assert logged.producer_epoch >= loaded[name].producer_epoch
            if logged.producer_epoch > loaded[name].producer_epoch:
                assert self.at.config.behaviour.transaction_version < 2

    @invariant()
    def producers_never_go_back(self) -> None:
        """An id that expires begins with a greater producer id."""
        for name, now in self.at.loaded().items():
            before = self.newest.get(name, (-1, -1))
            after = (now.producer_id, now.producer_epoch)
            assert after >= before
            self.newest[name] = after

    @invariant()
    def requests_wait_only_for_the_log(self) -> None:
        if not self.at.held:
            assert [call.request for call in self.at.calls if not call.answered] == []

    @invariant()
    def pending_states_end(self) -> None:
        """A transition is in progress only while its record or its markers are."""
        context = self.at.shard.context
        for name, live in context.live.items():
            if live.pending in (COMPLETE_COMMIT, COMPLETE_ABORT):
                assert name in context.completions or self.at.held
            elif live.pending is not None:
                assert self.at.held
                assert live.pending in (EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, DEAD)

    @invariant()
    def markers_have_decisions(self) -> None:
        self.note_decisions()
        made: dict[ProducerEpoch, set[ControlType]] = {}
        for (_, decision), _ in self.decided.items():
            made.setdefault(decision.producer, set()).add(decision.kind)
        for markers in self.markers.values():
            for producer, kind in markers:
                assert kind in made.get(producer, set()), (producer, kind)

    def note_decisions(self) -> None:
        """Read the new records of the log: every decision with its partitions."""
        for number in range(self.read, len(self.at.written)):
            now = self.at.written[number]
            if now is not None and now.state in _DECIDED:
                producer = ProducerEpoch(now.producer_id, now.producer_epoch)
                self.decided[now.transactional_id, Decision(producer, _DECIDED[now.state], now.start_ms)] = now.partitions
        self.read = len(self.at.written)

    def teardown(self) -> None:
        """Require that every request is answered and every decided transaction completed once log and partitions answer."""
        self.at.release()
        for _ in range(30):
            self.write_markers(ErrorCode.NONE, None)
            self.at.advance(100)
        self.note_decisions()
        assert [call.request for call in self.at.calls if not call.answered] == []
        assert {live.metadata.state for live in self.at.shard.context.live.values()} <= {
            EMPTY,
            ONGOING,
            COMPLETE_COMMIT,
            COMPLETE_ABORT,
        }
        for (_, decision), partitions in self.decided.items():
            for place in partitions:
                assert (decision.producer, decision.kind) in self.markers[place]


TestTransactionMachine = TransactionMachine.TestCase
TestTransactionMachine.settings = settings(
    max_examples=2 * (settings.default or settings()).max_examples,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
)
