"""Forged and damaged requests of producers, one after the other, with the answers of a broker or of the coordinator.

A victim has a transaction open while a request comes in its name. Its own next batch and commit show whether it was harmed.
"""

import struct
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any

from crc32c import crc32c
from data_partitions import batch
from eventually import eventually
from live_kafka import create_topic
from patience import FACTOR, PATIENCE_SECONDS
from wire_connection import Wire

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.compression import Compression
from coordinator_core.log.entries import ControlType
from coordinator_core.log.record_batch import CRC_START
from coordinator_core.protocol import apis
from coordinator_core.protocol.cluster import ProducePartition, ProduceRequest
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import CoordinatorType, FindCoordinatorRequest
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.protocol.offsets import OffsetToCommit, ProducerEpoch, TxnMarkerRequest, TxnOffsetCommitRequest
from coordinator_core.protocol.transactions import (
    NO_PRODUCER,
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)
from coordinator_core.wire import PartitionMarker

MIB = 1024 * 1024
#: A topic with the default limits, a compacted one, and one whose segments are smaller than its greatest batches.
PLAIN, COMPACTED, SMALL_SEGMENTS, LARGE_BATCHES = "plain", "compacted", "small-segments", "large-batches"
CONFIGS: Mapping[str, Mapping[str, str]] = {
    PLAIN: {},
    COMPACTED: {"cleanup_policy": "compact"},
    SMALL_SEGMENTS: {"segment_bytes": str(MIB), "max_message_bytes": str(8 * MIB)},
    LARGE_BATCHES: {"max_message_bytes": str(8 * MIB)},
}
PARTITIONS = 2
CLOSED = "closed"
#: How long a connection is open on which the broker never answers, since the request ended its handler.
SILENCE_SECONDS = 10 * FACTOR
#: Last version of Produce that does not add its partition to the transaction, and of the transaction coordinator's requests.
PRODUCE, BEFORE_VERSION_2 = 11, {apis.END_TXN: 4, apis.ADD_PARTITIONS_TO_TXN: 3, apis.TXN_OFFSET_COMMIT: 4}
_ATTRIBUTES, _DELTA, _PRODUCER, _EPOCH, _SEQUENCE, _COUNT = 21, 23, 43, 51, 53, 57
_BUSY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}
_HOUR_MS = 3_600_000
_names = count(1)


def now_ms() -> int:
    return int(time.time() * 1000)


def patched(data: bytes, *changes: tuple[int, str, int]) -> bytes:
    """The batch with other values in its header, and a correct checksum."""
    changed = bytearray(data)
    for at, kind, value in changes:
        struct.pack_into(kind, changed, at, value)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[CRC_START:]))
    return bytes(changed)


def plain(*values: bytes, **given: Any) -> bytes:
    return batch(list(values or (b"a",)), **{"timestamp": now_ms(), **given})


class Target:
    """A broker or a coordinator: requests over a connection that is opened again after each request that ends it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.port = int(bootstrap.rpartition(":")[2])
        self._wire = Wire(self.port)

    def close(self) -> None:
        self._wire.close()

    def ask(self, api: Any, version: int, request: Any) -> Any:
        """Send a request. Raises ConnectionError if the connection is closed instead of an answer."""
        try:
            return self._wire.ask(api, version, request)
        except OSError as error:
            self._wire.close()
            self._wire = Wire(self.port)
            raise ConnectionError(CLOSED) from error

    def until_it_is_found(self, key: str, kind: CoordinatorType = CoordinatorType.GROUP) -> None:
        """Look a coordinator up again until it is known: a look-up creates the topic of its kind, which may fail at first."""
        request = FindCoordinatorRequest((key,), kind)
        self.until_it_is_served(apis.FIND_COORDINATOR, 3, request, lambda response: response.coordinators[0].error)

    def until_it_is_served(self, api: Any, version: int, request: Any, error: Callable[[Any], ErrorCode]) -> Any:
        """Send a request again until the coordinator has loaded and is not busy."""
        return eventually(
            f"{api.name} is served", partial(self.ask, api, version, request), lambda response: error(response) not in _BUSY
        )

    def produced(
        self, data: bytes | None, *, at: tuple[str, int] = (PLAIN, 1), transactional_id: str | None = None,
        version: int = PRODUCE, acks: int = -1,
    ) -> str:  # fmt: skip
        request = ProduceRequest((ProducePartition(at[0], ZERO_UUID, at[1], data),), acks, transactional_id)
        self._wire.socket.settimeout(SILENCE_SECONDS if data is None else PATIENCE_SECONDS)
        try:
            return str(self.ask(apis.PRODUCE, version, request).partitions[0].error.name)
        except ConnectionError:
            return CLOSED

    def error(self, api: Any, version: int, request: Any) -> str:
        """The error in the response to a request of transactions."""
        response = self.until_it_is_served(api, version, request, _error)
        return _error(response).name

    def raw(self, frame: bytes) -> str:
        """Send bytes over a connection of their own; return the outcome."""
        wire = Wire(self.port)
        try:
            wire.socket.sendall(frame)
            return "answered" if wire.receive() else CLOSED
        except OSError:
            return CLOSED
        finally:
            wire.close()


def _error(response: Any) -> ErrorCode:
    if hasattr(response, "errors"):
        (error,) = response.errors.values()
    else:
        error = response.error
    return ErrorCode(error)


class Victim:
    """A producer with a transaction of two records in partition 0 of a topic of its own."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.name = f"victim-{next(_names)}"
        self.at = TopicPartition(PLAIN, 0)
        target.until_it_is_found(self.name, CoordinatorType.TRANSACTION)
        begin = InitProducerIdRequest(self.name, 60_000)
        for _ in range(2):
            # the second one has a greater epoch
            self.producer = target.until_it_is_served(apis.INIT_PRODUCER_ID, 4, begin, _error).producer
        assert target.error(*self.add(self.producer, self.at)) == "NONE"
        self.next_sequence = 0
        for _ in range(2):
            assert self.send() == "NONE"

    def add(self, producer: ProducerEpoch, at: TopicPartition, name: str | None = None) -> tuple[Any, int, Any]:
        return apis.ADD_PARTITIONS_TO_TXN, 3, AddPartitionsToTxnRequest(name or self.name, producer, (at,))

    def send(self) -> str:
        error = self._target.produced(self.batch(), at=self.at, transactional_id=self.name)
        self.next_sequence += 1
        return error

    def batch(self, *, epoch: int = 0, sequence: int | None = None, transactional: bool = True) -> bytes:
        """A batch in its name; `epoch` is added to its own."""
        number = self.next_sequence if sequence is None else sequence
        return plain(
            producer=self.producer.producer_id,
            epoch=self.producer.producer_epoch + epoch,
            sequence=number,
            transactional=transactional,
        )

    def moved(self, producer_id: int = 0, epoch: int = 0) -> ProducerEpoch:
        """Its producer, changed by these numbers."""
        return ProducerEpoch(self.producer.producer_id + producer_id, self.producer.producer_epoch + epoch)

    def commit(self) -> str:
        return self._target.error(apis.END_TXN, 4, EndTxnRequest(self.name, self.producer, True))


Damage = Callable[[Target, Victim], str]


def _in_its_name(make: Callable[[Victim], bytes], **given: Any) -> Damage:
    return lambda target, victim: target.produced(make(victim), **{"at": victim.at, "transactional_id": victim.name, **given})


def _end(make: Callable[[Victim], tuple[str, ProducerEpoch, bool]]) -> Damage:
    return lambda target, victim: target.error(apis.END_TXN, 4, EndTxnRequest(*make(victim)))


def _add(at: TopicPartition, **changes: int) -> Damage:
    return lambda target, victim: target.error(*victim.add(victim.moved(**changes), at))


def _init(**changes: int) -> Damage:
    return lambda target, victim: target.error(
        apis.INIT_PRODUCER_ID, 4, InitProducerIdRequest(victim.name, 60_000, victim.moved(**changes))
    )


def _marker(at: tuple[str, int], coordinator_epoch: int = 0, **changes: int) -> Damage:
    def send(target: Target, victim: Victim) -> str:
        request = TxnMarkerRequest(victim.moved(**changes), ControlType.ABORT, coordinator_epoch)
        return target.error(apis.WRITE_TXN_MARKERS, 1, PartitionMarker(*at, request))

    return send


def _commit_offsets(group: str, **changes: int) -> Damage:
    def send(target: Target, victim: Victim) -> str:
        target.until_it_is_found(group)
        offsets = {TopicPartition(PLAIN, 0): OffsetToCommit(1)}
        request = TxnOffsetCommitRequest(victim.name, group, victim.moved(**changes), offsets)
        return target.error(apis.TXN_OFFSET_COMMIT, 4, request)

    return send


OTHER = TopicPartition(PLAIN, 1)
#: Case → request in the name of a victim.
IN_ITS_NAME: Mapping[str, Damage] = {
    "nothing": lambda _, victim: victim.name and "NONE",
    "batch of an older epoch": _in_its_name(lambda victim: victim.batch(epoch=-1)),
    "batch of a greater epoch": _in_its_name(lambda victim: victim.batch(epoch=1, sequence=0)),
    "batch of a greater epoch and a later sequence": _in_its_name(lambda victim: victim.batch(epoch=1, sequence=9)),
    "batch after a gap": _in_its_name(lambda victim: victim.batch(sequence=99)),
    "batch that was sent before": _in_its_name(lambda victim: victim.batch(sequence=0)),
    "batch outside of the transaction": _in_its_name(lambda victim: victim.batch(transactional=False), transactional_id=None),
    "batch without transactional id": _in_its_name(Victim.batch, transactional_id=None),
    "batch for a partition that was not added": _in_its_name(lambda victim: victim.batch(sequence=0), at=OTHER),
    "batch of another transactional id": _in_its_name(
        lambda victim: victim.batch(sequence=0), at=OTHER, transactional_id="thief"
    ),
    "end of a greater epoch": _end(lambda victim: (victim.name, victim.moved(epoch=1), True)),
    "end of an older epoch": _end(lambda victim: (victim.name, victim.moved(epoch=-1), True)),
    "end of another producer": _end(lambda victim: (victim.name, victim.moved(producer_id=99), False)),
    "end of another transactional id": _end(lambda victim: ("thief", victim.producer, False)),
    "partition added by another producer": _add(OTHER, producer_id=99),
    "partition added with a greater epoch": _add(OTHER, epoch=1),
    "partition added with an older epoch": _add(OTHER, epoch=-1),
    "partition added of an unknown topic": _add(TopicPartition("nowhere", 0)),
    "partition added that does not exist": _add(TopicPartition(PLAIN, 77)),
    "expected producer is another one": _init(producer_id=99),
    "expected epoch is greater": _init(epoch=5),
    "expected epoch is older": _init(epoch=-1),
    "marker of an older epoch": _marker((PLAIN, 0), epoch=-1),
    "marker of an older epoch for another partition": _marker((PLAIN, 1), epoch=-1),
    "marker for an unknown topic": _marker(("nowhere", 0)),
    "marker for an unknown partition": _marker((PLAIN, 77)),
    "offsets without a transaction of the group": _commit_offsets("group"),
    "offsets of another producer": _commit_offsets("group", producer_id=99),
    "offsets of a greater epoch": _commit_offsets("group", epoch=1),
}

_THREE = (b"a", b"b", b"c")


def _header(*changes: tuple[int, str, int], **given: Any) -> Callable[[], bytes]:
    return lambda: patched(plain(*_THREE, **given), *changes)


#: Case → arguments of `Target.produced` for a producer without transactions.
BATCHES: Mapping[str, tuple[Callable[[], bytes | None], Mapping[str, Any]]] = {
    "good": (plain, {}),
    "null": (lambda: None, {}),
    "empty": (lambda: b"", {}),
    "cut off": (lambda: plain()[:-1], {}),
    "only a header": (lambda: plain()[:61], {}),
    "only a part of a header": (lambda: plain()[:30], {}),
    "two batches": (lambda: plain() + plain(), {}),
    "bytes after the batch": (lambda: plain() + b"\x00", {}),
    "format 0": (lambda: plain()[:16] + b"\x00" + plain()[17:], {}),
    "format 1": (lambda: plain()[:16] + b"\x01" + plain()[17:], {}),
    "format 3": (lambda: plain()[:16] + b"\x03" + plain()[17:], {}),
    "negative length": (lambda: plain()[:8] + b"\xff\xff\xff\xff" + plain()[12:], {}),
    "wrong checksum": (lambda: plain()[:-1] + b"\x7f", {}),
    "base offset": (lambda: b"\x00" * 7 + b"\x05" + plain()[8:], {}),
    "count too large": (_header((_COUNT, ">i", 4)), {}),
    "count and last offset too large": (_header((_COUNT, ">i", 4), (_DELTA, ">i", 3)), {}),
    "count negative": (_header((_COUNT, ">i", -1)), {}),
    "count huge": (_header((_COUNT, ">i", 1 << 30), (_DELTA, ">i", (1 << 30) - 1)), {}),
    "last offset too large": (_header((_DELTA, ">i", 9)), {}),
    "last offset negative": (_header((_DELTA, ">i", -1)), {}),
    "control records": (_header((_ATTRIBUTES, ">h", 0x20)), {}),
    "control records of a transaction": (_header((_ATTRIBUTES, ">h", 0x30)), {"transactional_id": "nobody"}),
    "transaction without producer": (_header((_ATTRIBUTES, ">h", 0x10)), {"transactional_id": "nobody"}),
    "transaction without producer and transactional id": (_header((_ATTRIBUTES, ">h", 0x10)), {}),
    "timestamps of a broker": (_header((_ATTRIBUTES, ">h", 0x08)), {}),
    "unknown compression": (_header((_ATTRIBUTES, ">h", 0x07)), {}),
    "wrong compression: gzip": (_header((_ATTRIBUTES, ">h", 0x01)), {}),
    "wrong compression: snappy": (_header((_ATTRIBUTES, ">h", 0x02)), {}),
    "wrong compression: lz4": (_header((_ATTRIBUTES, ">h", 0x03)), {}),
    "wrong compression: zstd": (_header((_ATTRIBUTES, ">h", 0x04)), {}),
    "unknown attributes": (_header((_ATTRIBUTES, ">h", 0x4000)), {}),
    "zstd before v7": (lambda: plain(compression=Compression.ZSTD), {"version": 6}),
    "sequence without producer": (_header((_SEQUENCE, ">i", 5)), {}),
    "producer without sequence": (_header((_PRODUCER, ">q", 1 << 40), (_EPOCH, ">h", 0)), {}),
    "producer with a negative epoch": (_header((_PRODUCER, ">q", 1 << 40), (_EPOCH, ">h", -5), (_SEQUENCE, ">i", 0)), {}),
    "negative producer": (_header((_PRODUCER, ">q", -7), (_EPOCH, ">h", 0), (_SEQUENCE, ">i", 0)), {}),
    "unknown producer in the middle": (lambda: plain(producer=(1 << 41), epoch=3, sequence=77), {}),
    "future timestamps": (lambda: plain(timestamp=now_ms() + 2 * _HOUR_MS), {}),
    "negative timestamps": (lambda: plain(timestamp=-5), {}),
    "compacted topic without keys": (lambda: plain(key=None), {"at": (COMPACTED, 0)}),
    "batch of 3 MiB": (lambda: plain(bytes(3 * MIB)), {}),
    "batch of 30 MiB": (lambda: plain(bytes(30 * MIB)), {}),
    "batch of 3 MiB in v3": (lambda: plain(bytes(3 * MIB)), {"version": 3}),
    "batch of 3 MiB with a wrong checksum": (lambda: plain(bytes(3 * MIB))[:-1] + b"\x7f", {}),
    "batch of 3 MiB with a base offset": (lambda: b"\x00" * 7 + b"\x05" + plain(bytes(3 * MIB))[8:], {}),
    "batch of 3 MiB where 8 are allowed": (lambda: plain(bytes(3 * MIB)), {"at": (LARGE_BATCHES, 0)}),
    "batch larger than a segment": (lambda: plain(bytes(3 * MIB)), {"at": (SMALL_SEGMENTS, 0)}),
    "batch larger than a segment with a wrong count": (
        lambda: patched(plain(bytes(3 * MIB)), (_COUNT, ">i", 9)), {"at": (SMALL_SEGMENTS, 0)},
    ),
    "bomb of 200 MB": (lambda: plain(*[bytes(50 * MIB)] * 4, compression=Compression.ZSTD), {}),
    "acks 7": (plain, {"acks": 7}),
    "unknown topic": (plain, {"at": ("nowhere", 0)}),
    "unknown partition": (plain, {"at": (PLAIN, 77)}),
    "negative partition": (plain, {"at": (PLAIN, -1)}),
    "offsets of groups": (plain, {"at": (OFFSETS_TOPIC, 0)}),
    "states of transactions": (plain, {"at": (TRANSACTION_STATE_TOPIC, 0)}),
    "no transaction, but a transactional id": (plain, {"transactional_id": "somebody"}),
}  # fmt: skip

_HEADER = b"\x00\x00\x00\x01\x00\x01c"
#: Case → bytes of a connection.
FRAMES: Mapping[str, bytes] = {
    "size of 2 GiB": b"\x7f\xff\xff\xff",
    "negative size": b"\xff\xff\xff\xff",
    "size of 100 MiB and one byte": (100 * MIB + 1).to_bytes(4) + b"\x00\x00\x00\x0b",
    "empty frame": b"\x00\x00\x00\x00",
    "unknown API": b"\x00\x00\x00\x0b" + b"\x03\xe7\x00\x00" + _HEADER,
    "unknown version of Produce": b"\x00\x00\x00\x0b" + b"\x00\x00\x00\x63" + _HEADER,
    "Produce without body": b"\x00\x00\x00\x0b" + b"\x00\x00\x00\x03" + _HEADER,
    "Produce with many topics": b"\x00\x00\x00\x17\x00\x00\x00\x03" + _HEADER + b"\xff\xff\xff\xff" + bytes(4) + b"\x7f" * 4,
}


def create_topics(bootstrap: str) -> None:
    for name, configs in CONFIGS.items():
        create_topic(bootstrap, name, PARTITIONS, **configs)


def play(bootstrap: str) -> dict[str, str]:
    """All cases in their order → answer; in a victim's name with what its next batch and its commit are answered."""
    target = Target(bootstrap)
    found: dict[str, str] = {}
    try:
        # the first victim creates the topics of the coordinators
        _commit_offsets("group")(target, Victim(target))
        found |= {case: target.produced(make(), **given) for case, (make, given) in BATCHES.items()}
        found |= {case: target.raw(frame) for case, frame in FRAMES.items()}
        for case, damage in IN_ITS_NAME.items():
            victim = Victim(target)
            answer = damage(target, victim)
            found[case] = f"{answer}; then {victim.send()}, {victim.commit()}"
        initial = InitProducerIdRequest(None, 60_000, NO_PRODUCER)
        found["producer id with a timeout of a day"] = target.error(
            apis.INIT_PRODUCER_ID, 4, InitProducerIdRequest("long", 24 * _HOUR_MS)
        )
        found["producer id without a transactional id"] = target.error(apis.INIT_PRODUCER_ID, 4, initial)
        found["empty transactional id"] = target.error(apis.INIT_PRODUCER_ID, 4, InitProducerIdRequest("", 60_000))
        found["group added to no transaction"] = target.error(
            apis.ADD_OFFSETS_TO_TXN, 3, AddOffsetsToTxnRequest("nobody", ProducerEpoch(1, 1), "group")
        )
    finally:
        target.close()
    return found
