"""One scenario of transactional producers as single requests, for a broker and for our coordinator: answers and records."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from eventually import eventually
from wire_connection import Wire

from coordinator_core.codec import TransactionRecord, decode_transaction
from coordinator_core.codec.messages.transactions import PartitionsSchema, TransactionLogValue
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.columns import parse_columns, to_log_records
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import CoordinatorType, FindCoordinatorRequest
from coordinator_core.protocol.internal_topics import TRANSACTION_STATE_TOPIC
from coordinator_core.protocol.offsets import OffsetFetchRequest, OffsetToCommit, ProducerEpoch, TxnOffsetCommitRequest
from coordinator_core.protocol.transactions import (
    NO_PRODUCER,
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
)

TOPIC = "orders"
PLACE = TopicPartition(TOPIC, 0)
TIMEOUT_MS = 600_000
SHORT_TIMEOUT_MS = 300
#: Settings of a broker that the scenario needs, and those of our coordinator of the same names.
SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 200}
_BUSY = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class ClientVersions(NamedTuple):
    """Versions of the requests of a client: of 2.0, 3.9, or of 4.0 with transaction version 2."""

    init: int
    add: int
    offsets: int
    commit: int
    end: int


OLD = ClientVersions(1, 1, 1, 1, 1)
PLAIN = ClientVersions(5, 3, 4, 4, 4)
BUMPING = ClientVersions(5, 3, 4, 5, 5)


@dataclass
class TransactionClient:
    """Sends requests to one node and notes the answers. A request is repeated while the coordinator is busy."""

    wire: Wire
    answers: list[tuple[str, str]] = field(default_factory=list)
    _producer_ids: dict[int, int] = field(default_factory=dict)

    def await_coordinator(self, name: str) -> None:
        """Wait until the id and its group have a coordinator; on a broker, the first requests create the topics."""
        for key, kind in ((name, CoordinatorType.TRANSACTION), (f"group-{name}", CoordinatorType.GROUP)):
            request = FindCoordinatorRequest((key,), kind)
            eventually(
                f"{key} has a coordinator",
                partial(self._coordinator_error, request),
                lambda error: error is ErrorCode.NONE,
            )

    def _coordinator_error(self, request: FindCoordinatorRequest) -> ErrorCode:
        error: ErrorCode = self.wire.ask(apis.FIND_COORDINATOR, 4, request).coordinators[0].error
        return error

    def init(
        self, name: str | None, versions: ClientVersions, expected: ProducerEpoch = NO_PRODUCER, timeout_ms: int = TIMEOUT_MS
    ) -> ProducerEpoch:
        """The producer of the answer."""
        request = InitProducerIdRequest(name, timeout_ms, expected)
        response = self._ask(apis.INIT_PRODUCER_ID, versions.init, request)
        producer: ProducerEpoch = response.producer
        self._note(f"init {name}", response.error, producer)
        return producer

    def fence(self, name: str) -> None:
        """The first answer of InitProducerId while a transaction is open."""
        response = self.wire.ask(apis.INIT_PRODUCER_ID, 5, InitProducerIdRequest(name, TIMEOUT_MS))
        self._note(f"fence {name}", response.error, response.producer)

    def add(self, name: str, producer: ProducerEpoch, versions: ClientVersions, *topics: str) -> None:
        partitions = tuple(TopicPartition(topic, 0) for topic in topics)
        response = self._ask(apis.ADD_PARTITIONS_TO_TXN, versions.add, AddPartitionsToTxnRequest(name, producer, partitions))
        for partition, error in sorted(response.errors.items()):
            self._note(f"add {partition.topic} {name}", error)

    def verify(self, name: str, producer: ProducerEpoch) -> None:
        """AddPartitionsToTxn of a broker that verifies a partition."""
        request = AddPartitionsToTxnRequest(name, producer, (PLACE,), verify_only=True, from_broker=True)
        (error,) = self._ask(apis.ADD_PARTITIONS_TO_TXN, 5, request).errors.values()
        self._note(f"verify {name}", error)

    def add_offsets(self, name: str, producer: ProducerEpoch, versions: ClientVersions) -> None:
        response = self._ask(apis.ADD_OFFSETS_TO_TXN, versions.offsets, AddOffsetsToTxnRequest(name, producer, f"group-{name}"))
        self._note(f"add offsets {name}", response.error)

    def commit_offset(self, name: str, producer: ProducerEpoch, versions: ClientVersions, offset: int) -> None:
        request = TxnOffsetCommitRequest(f"group-{name}", name, producer, {PLACE: OffsetToCommit(offset)})
        (error,) = self._ask(apis.TXN_OFFSET_COMMIT, versions.commit, request).errors.values()
        self._note(f"commit offset {name}", error)

    def end(self, name: str, producer: ProducerEpoch, versions: ClientVersions, *, commit: bool) -> ProducerEpoch:
        """The producer of the next transaction, by the answer."""
        response = self._ask(apis.END_TXN, versions.end, EndTxnRequest(name, producer, commit))
        after: ProducerEpoch = response.producer
        self._note(f"end {name}", response.error, after)
        return after

    def offset(self, name: str) -> None:
        """Note the committed offset, once no transaction holds it back."""
        request = OffsetFetchRequest(f"group-{name}", (PLACE,), require_stable=True)
        fetched = eventually(
            "the offset is stable",
            lambda: self.wire.ask(apis.OFFSET_FETCH, 8, request).offsets.get(PLACE),
            lambda found: found is not None and found.error is ErrorCode.NONE,
        )
        assert fetched is not None
        self.answers.append((f"offset {name}", str(fetched.offset)))

    def describe(self, name: str) -> tuple[str, ...]:
        """State, producer and partitions, once no marker is under way."""
        found = eventually(
            "the transaction is completed",
            lambda: self.wire.ask(apis.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionRequest(name)),
            lambda found: found.error not in _BUSY and not found.state.startswith("Prepare"),
        )
        shown = sorted(f"{each.topic}-{each.partition}" for each in found.partitions)
        return (found.error.name, found.state, str(found.timeout_ms), str(found.producer.producer_epoch), *shown)

    def listed(self, **filters: Any) -> dict[str, str]:
        """States by id."""
        response = self.wire.ask(apis.LIST_TRANSACTIONS, 1, ListTransactionsRequest(**filters))
        assert response.error is ErrorCode.NONE
        return {each.transactional_id: each.state for each in response.transactions}

    def _ask(self, api: AnyApi, version: int, request: Any) -> Any:
        """Ask until the coordinator is not busy."""
        return eventually(
            api.name,
            lambda: self.wire.ask(api, version, request),
            lambda response: not any(error in _BUSY for error in api.errors(response)),
        )

    def _note(self, step: str, error: ErrorCode, producer: ProducerEpoch | None = None) -> None:
        """Producer ids are numbered in the order of their first answer."""
        shown = error.name
        if producer is not None and producer.producer_id >= 0:
            number = self._producer_ids.setdefault(producer.producer_id, len(self._producer_ids))
            shown += f" producer {number} epoch {producer.producer_epoch}"
        self.answers.append((step, shown))


@contextmanager
def transaction_client(bootstrap: str) -> Iterator[TransactionClient]:
    """A client with one connection."""
    client = TransactionClient(Wire(int(bootstrap.rpartition(":")[2])))
    try:
        yield client
    finally:
        client.wire.close()


IDS = ("plain", "old", "fenced", "timeout", "idle", "open", "aborted", "bumping", "overtaken", "kept")


def play_transactions(on: TransactionClient, era: str) -> None:
    """Run the scenario; with transaction version 2 in era 4."""
    for name in IDS:
        on.await_coordinator(name)
    on.init(None, PLAIN)
    _commit_and_abort(on, "plain", PLAIN)
    _commit_and_abort(on, "old", OLD)
    _fenced(on)
    _invalid(on)
    _timed_out(on)
    idle = on.init("idle", PLAIN)
    on.init("idle", PLAIN, idle)
    on.init("idle", PLAIN, idle)
    on.init("idle", PLAIN)
    on.init("idle", PLAIN, idle)
    open_producer = on.init("open", PLAIN)
    on.add_offsets("open", open_producer, PLAIN)
    on.add("open", open_producer, PLAIN, TOPIC)
    if era == "4":
        _bumping(on)


def _commit_and_abort(on: TransactionClient, name: str, versions: ClientVersions) -> None:
    producer = on.init(name, versions)
    for offset, commit in ((42, True), (77, False), (43, True)):
        on.add_offsets(name, producer, versions)
        on.add_offsets(name, producer, versions)
        on.commit_offset(name, producer, versions, offset)
        on.end(name, producer, versions, commit=commit)
        on.offset(name)
    on.describe(name)
    on.end(name, producer, versions, commit=True)
    on.end(name, producer, versions, commit=False)
    on.end(name, ProducerEpoch(producer.producer_id, 9), versions, commit=False)


def _fenced(on: TransactionClient) -> None:
    zombie = on.init("fenced", PLAIN)
    on.add_offsets("fenced", zombie, PLAIN)
    on.commit_offset("fenced", zombie, PLAIN, 5)
    on.fence("fenced")
    newer = on.init("fenced", PLAIN)
    on.add_offsets("fenced", zombie, PLAIN)
    on.add_offsets("fenced", zombie, OLD)
    on.add("fenced", zombie, PLAIN, TOPIC)
    on.commit_offset("fenced", zombie, PLAIN, 6)
    on.end("fenced", zombie, PLAIN, commit=True)
    on.init("fenced", PLAIN, zombie)
    on.offset("fenced")
    on.add_offsets("fenced", newer, PLAIN)
    on.commit_offset("fenced", newer, PLAIN, 7)
    on.end("fenced", newer, PLAIN, commit=True)
    on.offset("fenced")


def _invalid(on: TransactionClient) -> None:
    nobody = ProducerEpoch(123_456, 0)
    on.add_offsets("unknown", nobody, PLAIN)
    on.end("unknown", nobody, PLAIN, commit=True)
    on.init("", PLAIN)
    on.init("kept", PLAIN, timeout_ms=0)
    on.init("kept", PLAIN, timeout_ms=900_001)
    on.init("kept", PLAIN, ProducerEpoch(5, -1))
    producer = on.init("kept", PLAIN)
    on.init("kept", PLAIN, nobody)
    on.add("kept", producer, PLAIN, TOPIC, "missing")
    on.add("kept", producer, PLAIN, "__consumer_offsets")
    on.add("kept", ProducerEpoch(producer.producer_id, 3), PLAIN, TOPIC)
    on.commit_offset("kept", producer, PLAIN, 1)
    on.verify("kept", producer)
    on.end("kept", producer, PLAIN, commit=True)


def _timed_out(on: TransactionClient) -> None:
    late = on.init("timeout", PLAIN, timeout_ms=SHORT_TIMEOUT_MS)
    on.add_offsets("timeout", late, PLAIN)
    on.commit_offset("timeout", late, PLAIN, 1)
    _until(lambda: on.describe("timeout")[1] == "CompleteAbort")
    on.end("timeout", late, PLAIN, commit=True)
    on.init("timeout", PLAIN)
    on.offset("timeout")


def _bumping(on: TransactionClient) -> None:
    """Transaction version 2: partitions are added implicitly, and each end increments the epoch."""
    producer = on.init("bumping", BUMPING)
    for offset, commit in ((1, True), (2, False), (3, True)):
        on.commit_offset("bumping", producer, BUMPING, offset)
        after = on.end("bumping", producer, BUMPING, commit=commit)
        on.offset("bumping")
        on.describe("bumping")
        # a retry, and a commit of the next, empty transaction
        on.end("bumping", producer, BUMPING, commit=commit)
        on.commit_offset("bumping", producer, BUMPING, 99)
        on.end("bumping", after, BUMPING, commit=True)
        producer = after
    producer = on.end("bumping", producer, BUMPING, commit=False)
    on.init("bumping", BUMPING, producer)
    empty = on.init("aborted", BUMPING)
    on.end("aborted", empty, BUMPING, commit=True)
    on.end("aborted", empty, BUMPING, commit=False)
    zombie = on.init("overtaken", BUMPING)
    on.commit_offset("overtaken", zombie, BUMPING, 1)
    on.fence("overtaken")
    on.init("overtaken", BUMPING, zombie)
    on.end("overtaken", zombie, BUMPING, commit=True)


def _until(condition: Callable[[], bool]) -> None:
    eventually("the transaction is aborted", condition)


# ---- records


def transaction_records(log: Path) -> dict[str, list[TransactionLogValue | None]]:
    """Values of all records by id, with producer ids in the order of their first record of the id, and without times.

    A start time becomes 0, or -1 if there is none; partitions are sorted, since brokers have them in hash order.
    """
    found: dict[str, list[TransactionLogValue | None]] = {}
    for folder in sorted(log.glob(f"{TRANSACTION_STATE_TOPIC}-*")):
        for segment in sorted(folder.glob("*.log")):
            data = segment.read_bytes()
            for record in to_log_records(parse_columns(data), int(folder.name.rpartition("-")[2])):
                assert not record.is_control
                assert record.producer_id == -1
                decoded = decode_transaction(record.key, record.value)
                assert isinstance(decoded, TransactionRecord), decoded
                if decoded.value is not None:
                    assert abs(decoded.value.transaction_last_update_timestamp_ms - record.timestamp) < 5_000
                found.setdefault(decoded.key.transactional_id, []).append(decoded.value)
    return {name: _normalized(values) for name, values in found.items()}


def _normalized(values: list[TransactionLogValue | None]) -> list[TransactionLogValue | None]:
    def in_order(topics: tuple[PartitionsSchema, ...] | None) -> tuple[PartitionsSchema, ...] | None:
        if topics is None:
            return None
        each = (replace(topic, partition_ids=tuple(sorted(topic.partition_ids))) for topic in topics)
        return tuple(sorted(each, key=lambda topic: topic.topic))

    numbers = {-1: -1}
    normalized: list[TransactionLogValue | None] = []
    for value in values:
        if value is None:
            normalized.append(None)
            continue
        normalized.append(
            replace(
                value,
                producer_id=numbers.setdefault(value.producer_id, len(numbers)),
                previous_producer_id=numbers.setdefault(value.previous_producer_id, len(numbers)),
                next_producer_id=numbers.setdefault(value.next_producer_id, len(numbers)),
                transaction_last_update_timestamp_ms=0,
                transaction_start_timestamp_ms=min(value.transaction_start_timestamp_ms, 0),
                transaction_partitions=in_order(value.transaction_partitions),
            )
        )
    return normalized


def without_producer_ids(records: dict[str, list[TransactionLogValue | None]]) -> dict[str, list[TransactionLogValue | None]]:
    """The records as brokers before 4.3 write them: previous and next producer ids are left out."""
    return {
        name: [None if each is None else replace(each, previous_producer_id=-1, next_producer_id=-1) for each in values]
        for name, values in records.items()
    }
