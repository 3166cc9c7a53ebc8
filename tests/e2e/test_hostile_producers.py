"""Forged and damaged requests get Kafka's errors, and do not harm a producer that has a transaction open meanwhile."""

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from crc32c import crc32c
from data_partitions import batch
from eventually import eventually
from live_kafka import QUIET
from patience import PATIENCE_SECONDS
from read_topics import read_topic
from wire_connection import Wire

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.compression import Compression
from coordinator_core.log.entries import ControlType
from coordinator_core.log.record_batch import CRC_START
from coordinator_core.protocol import apis
from coordinator_core.protocol.cluster import ProducePartition, ProduceRequest
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch, TxnMarkerRequest
from coordinator_core.protocol.topics import DescribeProducersRequest
from coordinator_core.protocol.transactions import AddPartitionsToTxnRequest, EndTxnRequest
from coordinator_core.wire import PartitionMarker
from pipelines.examples.private.private_coordinator import PrivateCoordinator

TOPIC, OWNER = "orders", "owner"
#: Last version of Produce that does not add its partition to the transaction.
_PRODUCE = 11
_ATTRIBUTES_AT, _COUNT_AT = 21, 57


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateCoordinator]:
    topics: dict[str, Any] = {TOPIC: {"partitions": 2, "data": True}}
    settings: dict[str, Any] = {"offsets_topic_num_partitions": 2, "transaction_state_log_num_partitions": 2}
    with PrivateCoordinator(tmp_path_factory.mktemp("coordinator") / "log", topics=topics, **settings) as running:
        yield running
        assert running.events("unexpected error") == []
        running.stop()


@pytest.fixture
def wire(coordinator: PrivateCoordinator) -> Iterator[Wire]:
    connection = Wire(coordinator.port)
    yield connection
    connection.close()


class Victim:
    """A producer with an open transaction in partition 0, with two records."""

    def __init__(self, coordinator: PrivateCoordinator, wire: Wire) -> None:
        settings = {"bootstrap.servers": coordinator.bootstrap, "transactional.id": OWNER, **QUIET}
        # the second one has a greater epoch
        Producer(settings).init_transactions(PATIENCE_SECONDS)
        self.producer = Producer(settings)
        self.producer.init_transactions(PATIENCE_SECONDS)
        self.producer.begin_transaction()
        for value in (b"a", b"b"):
            self.producer.produce(TOPIC, value, partition=0)
            assert self.producer.flush(PATIENCE_SECONDS) == 0
        at = TopicPartition(TOPIC, 0)
        described = wire.ask(apis.DESCRIBE_PRODUCERS, 0, DescribeProducersRequest((at,))).partitions[at]
        (active,) = (each for each in described.producers if each.current_txn_start_offset >= 0)
        self.id, self.epoch, self.next_sequence = active.producer_id, active.producer_epoch, active.last_sequence + 1


def patched(data: bytes, at: int, kind: str, value: int) -> bytes:
    """The batch with another value in its header, and a correct checksum."""
    changed = bytearray(data)
    struct.pack_into(kind, changed, at, value)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[CRC_START:]))
    return bytes(changed)


def of(victim: Victim, *, epoch: int = 0, sequence: int | None = None, transactional: bool = True) -> bytes:
    """A batch in the name of the victim; `epoch` is added to its own."""
    number = victim.next_sequence if sequence is None else sequence
    now_ms = int(time.time() * 1000)
    return batch(
        [b"forged"],
        producer=victim.id,
        epoch=victim.epoch + epoch,
        sequence=number,
        transactional=transactional,
        timestamp=now_ms,
    )


def plain(*values: bytes, compression: Compression = Compression.NONE) -> bytes:
    return batch(list(values), timestamp=int(time.time() * 1000), compression=compression)


#: Case → partition, transactional id, batch, error.
BATCHES: dict[str, tuple[int, str | None, Callable[[Victim], bytes], ErrorCode]] = {
    "an older epoch": (0, OWNER, lambda victim: of(victim, epoch=-1), ErrorCode.INVALID_PRODUCER_EPOCH),
    "a greater epoch": (0, OWNER, lambda victim: of(victim, epoch=1, sequence=0), ErrorCode.INVALID_PRODUCER_EPOCH),
    "a gap": (0, OWNER, lambda victim: of(victim, sequence=99), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    "outside of the transaction": (0, None, lambda victim: of(victim, transactional=False), ErrorCode.INVALID_TXN_STATE),
    "no transactional id": (0, None, of, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    "another partition": (1, OWNER, lambda victim: of(victim, sequence=0), ErrorCode.TRANSACTION_ABORTABLE),
    "another transactional id": (1, "thief", lambda victim: of(victim, sequence=0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    "a wrong checksum": (0, None, lambda _: plain(b"x")[:-1] + b"\x7f", ErrorCode.CORRUPT_MESSAGE),
    "a control batch": (0, None, lambda _: patched(plain(b"x"), _ATTRIBUTES_AT, ">h", 0x20), ErrorCode.INVALID_RECORD),
    "a wrong count": (0, None, lambda _: patched(plain(b"x"), _COUNT_AT, ">i", 1 << 30), ErrorCode.INVALID_RECORD),
    "a large batch": (0, None, lambda _: plain(bytes(3 << 19)), ErrorCode.MESSAGE_TOO_LARGE),
}


def produced(wire: Wire, partition: int, transactional_id: str | None, data: bytes) -> ErrorCode:
    request = ProduceRequest((ProducePartition(TOPIC, ZERO_UUID, partition, data),), transactional_id=transactional_id)
    error: ErrorCode = wire.ask(apis.PRODUCE, _PRODUCE, request).partitions[0].error
    return error


def test_hostile_producers(coordinator: PrivateCoordinator, wire: Wire) -> None:
    victim = Victim(coordinator, wire)
    found = {
        case: produced(wire, partition, transactional_id, make(victim))
        for case, (partition, transactional_id, make, _) in BATCHES.items()
    }
    assert found == {case: error for case, (_, _, _, error) in BATCHES.items()}

    own, newer, other = (
        ProducerEpoch(victim.id, victim.epoch),
        ProducerEpoch(victim.id, victim.epoch + 1),
        ProducerEpoch(victim.id + 99, victim.epoch),
    )
    for commit in (True, False):
        assert wire.ask(apis.END_TXN, 4, EndTxnRequest(OWNER, newer, commit)).error is ErrorCode.PRODUCER_FENCED
        assert wire.ask(apis.END_TXN, 4, EndTxnRequest(OWNER, other, commit)).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert wire.ask(apis.END_TXN, 4, EndTxnRequest("thief", own, commit)).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    at = TopicPartition(TOPIC, 1)
    added = wire.ask(apis.ADD_PARTITIONS_TO_TXN, 3, AddPartitionsToTxnRequest(OWNER, other, (at,)))
    assert added.errors == {at: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    stale = TxnMarkerRequest(ProducerEpoch(victim.id, victim.epoch - 1), ControlType.ABORT)
    assert wire.ask(apis.WRITE_TXN_MARKERS, 1, PartitionMarker(TOPIC, 0, stale)).error is ErrorCode.INVALID_PRODUCER_EPOCH

    victim.producer.produce(TOPIC, b"c", partition=0)
    victim.producer.commit_transaction(PATIENCE_SECONDS)
    assert read_topic(coordinator.bootstrap, TOPIC, 2) == [b"a", b"b", b"c"]
    assert read_topic(coordinator.bootstrap, TOPIC, 2, "read_uncommitted") == [b"a", b"b", b"c"]
    assert [line["reason"] for line in coordinator.events("connection ended")] == []


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_a_bomb(wire: Wire, compression: Compression) -> None:
    """A batch that decompresses to 200 MB."""
    bomb = plain(*[bytes(50 << 20)] * 4, compression=compression)
    assert produced(wire, 1, None, bomb) is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        pytest.param((3 << 20).to_bytes(4) + b"\x00\x08", "and is not Produce", id="another API"),
        pytest.param((101 << 20).to_bytes(4) + b"\x00\x00", "exceeds socket.request.max.bytes", id="too large"),
        pytest.param(
            (3 << 20).to_bytes(4)
            + b"\x00\x00\x00\x03"
            + bytes(4)
            + b"\xff\xff\xff\xff"
            + bytes(6)
            + b"\x7f" * 4
            + bytes(3 << 20),
            "without its records",
            id="topics instead of records",
        ),
    ],
)
def test_large_requests(coordinator: PrivateCoordinator, wire: Wire, start: bytes, reason: str) -> None:
    """The connection ends; requests of other APIs are not even read."""
    with suppress(OSError):
        wire.socket.sendall(start)
    assert wire.receive() == b""
    ended = [line["reason"] for line in coordinator.events("connection ended")]
    assert any(reason in each for each in ended)


def test_large_requests_of_many_connections(tmp_path: Path) -> None:
    """More than 32 MiB of them end a connection; the request that is complete is answered."""
    settings: dict[str, Any] = {"offsets_topic_num_partitions": 2, "transaction_state_log_num_partitions": 2}
    topics: dict[str, Any] = {TOPIC: {"partitions": 2, "data": True}}
    mib = 1 << 20
    with PrivateCoordinator(tmp_path / "log", topics=topics, queued_max_request_bytes=32 * mib, **settings) as running:
        wires = [Wire(running.port) for _ in range(12)]
        for each in wires:
            with suppress(OSError):
                each.socket.sendall((90 * mib).to_bytes(4) + b"\x00\x00" + bytes(8 * mib))
        eventually("a connection is closed", lambda: running.events("connection ended"))
        for each in wires:
            each.close()
        last = Wire(running.port)
        assert produced(last, 1, None, plain(bytes(20 * mib))) is ErrorCode.MESSAGE_TOO_LARGE
        assert produced(last, 1, None, plain(b"small")) is ErrorCode.NONE
        last.close()
        running.stop()
