"""A consumer with a fetch session has, after every fetch, what a full fetch of its partitions finds."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.protocol.cluster import FetchedPartition, FetchPartition, FetchRequest, FetchResponse, ForgottenPartition
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.service.topics.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchSessions, next_epoch

PARTITIONS = range(4)
_NUMBERS = st.sampled_from(PARTITIONS)
_BYTES = 3
_SLOTS, _MOST_PARTITIONS = 2, 7


class Consumer:
    """A consumer as `FetchSessionHandler` describes it: what it wants, what its session has, and what it has received."""

    def __init__(self) -> None:
        self.wanted = {number: FetchPartition("t", ZERO_UUID, number, 0, _BYTES) for number in (0, 1)}
        self.in_session: dict[int, FetchPartition] = {}
        self.session = (NO_SESSION, INITIAL_EPOCH)
        self.seen: dict[int, tuple[int, int]] = {}
        self.offsets = dict.fromkeys(PARTITIONS, 0)

    def request(self) -> FetchRequest:
        session_id, epoch = self.session
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            changed, forgotten = list(self.wanted.values()), []
            self.seen.clear()
        else:
            changed = [each for number, each in self.wanted.items() if self.in_session.get(number) != each]
            forgotten = [ForgottenPartition("t", ZERO_UUID, number) for number in self.in_session.keys() - self.wanted.keys()]
        for number in self.in_session.keys() - self.wanted.keys():
            self.seen.pop(number, None)
        self.in_session = dict(self.wanted)
        return FetchRequest(tuple(changed), session_id=session_id, session_epoch=epoch, forgotten=tuple(forgotten))

    def receive(self, response: FetchResponse) -> None:
        if response.error is not ErrorCode.NONE:
            self.session = NO_SESSION, INITIAL_EPOCH
            return
        for each in response.partitions:
            self.seen[each.partition] = each.high_watermark, each.log_start_offset
            self.offsets[each.partition] += len(each.records)
        self.session = response.session_id, INITIAL_EPOCH if response.session_id == NO_SESSION else next_epoch(self.session[1])


class Sessions(RuleBasedStateMachine):
    """Three consumers and a node whose partitions grow, lose their first records, and fail for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.last_id = 0
        self.node = FetchSessions(_SLOTS, self.new_id, eviction_ms=100, most_partitions=_MOST_PARTITIONS)
        self.consumers = [Consumer(), Consumer(), Consumer()]
        self.ends = dict.fromkeys(PARTITIONS, 0)
        self.starts = dict.fromkeys(PARTITIONS, 0)
        self.failing: set[int] = set()
        #: Partitions whose records do not fit into the response any more.
        self.crowded: set[int] = set()

    def new_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def find(self, consumer: Consumer, requested: FetchPartition) -> FetchedPartition:
        number = requested.partition
        if number in self.failing:
            return FetchedPartition("t", ZERO_UUID, number, ErrorCode.KAFKA_STORAGE_ERROR)
        end, start = self.ends[number], self.starts[number]
        has_records = requested.offset < end and number not in self.crowded
        records = bytes(min(end - requested.offset, requested.max_bytes)) if has_records else b""
        assert requested.offset <= consumer.offsets[number]
        return FetchedPartition("t", ZERO_UUID, number, ErrorCode.NONE, end, start, end, None, records)

    @rule(number=_NUMBERS, count=st.integers(1, 5))
    def append(self, number: int, count: int) -> None:
        self.ends[number] += count

    @rule(number=_NUMBERS)
    def delete_records(self, number: int) -> None:
        self.starts[number] = self.ends[number]

    @rule(number=_NUMBERS)
    def fail_or_recover(self, number: int) -> None:
        self.failing ^= {number}

    @rule(number=_NUMBERS)
    def crowd(self, number: int) -> None:
        self.crowded ^= {number}

    @rule(ms=st.integers(1, 200))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @rule(consumer=st.integers(0, 2), numbers=st.sets(_NUMBERS))
    def assign(self, consumer: int, numbers: set[int]) -> None:
        self.consumers[consumer].wanted = {number: self.at(self.consumers[consumer], number) for number in sorted(numbers)}

    @rule(consumer=st.integers(0, 9))
    def end_session(self, consumer: int) -> None:
        """The node forgets the session, or the consumer closes it; most of the time neither."""
        if consumer in range(3):
            self.node.remove(self.consumers[consumer].session[0])
        elif consumer in range(3, 6):
            self.fetch(self.consumers[consumer - 3], final=True)
            assert self.consumers[consumer - 3].session == (NO_SESSION, INITIAL_EPOCH)

    @rule(consumer=st.integers(0, 2), times=st.integers(1, 4))
    def poll(self, consumer: int, times: int) -> None:
        for _ in range(times):
            self.fetch(self.consumers[consumer])

    def at(self, consumer: Consumer, number: int) -> FetchPartition:
        return FetchPartition("t", ZERO_UUID, number, consumer.offsets[number], _BYTES)

    def fetch(self, consumer: Consumer, *, final: bool = False) -> None:
        consumer.wanted = {number: self.at(consumer, number) for number in consumer.wanted}
        if final:
            consumer.session = consumer.session[0], FINAL_EPOCH
        request = consumer.request()
        is_known, room = request.session_id in self.node, _MOST_PARTITIONS - self.node.total_partitions
        fetch = self.node.begin(request, {}, self.now_ms)
        if fetch.error is ErrorCode.NONE:
            assert {each.partition: each for each in fetch.partitions} == consumer.wanted
        whole = tuple(self.find(consumer, each) for each in fetch.partitions)
        if fetch.error is not ErrorCode.NONE:
            assert fetch.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            assert not is_known or len(request.partitions) > room
        response = fetch.respond(whole, self.now_ms)
        consumer.receive(response)
        if response.error is ErrorCode.NONE:
            sent = {each.partition: each for each in response.partitions}
            for each in whole:
                # partitions with records or an error are sent; those left out have nothing new
                assert sent.get(each.partition) == each or not (each.records or each.error)
                assert consumer.seen[each.partition] == (each.high_watermark, each.log_start_offset)

    @invariant()
    def the_limits_hold(self) -> None:
        sessions = self.node._sessions.values()
        assert len(sessions) <= _SLOTS
        assert self.node.total_partitions == sum(len(each.partitions) for each in sessions) <= _MOST_PARTITIONS


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=60, stateful_step_count=40, derandomize=True, deadline=None)
