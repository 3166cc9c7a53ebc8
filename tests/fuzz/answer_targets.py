"""Answers of brokers: mutated responses through the client library's decoder and the reader of `kafka://`, without sockets."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

from fake_cluster import TOPIC, FakeCluster, FakePartition
from fuzz_mutations import mutated, mutated_frame
from fuzz_target import Target
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.parser import KafkaProtocol

from coordinator_core.log.columns import to_log_records
from coordinator_core.log.compression import Compression
from coordinator_core.log.errors import LogError, LogUnreachable
from coordinator_core.log.fetch import KafkaLog
from coordinator_core.log.record_batch import BatchRecord, write_batch

#: Partition → the offset that is read up to.
WANTED = {0: 12, 1: 10, 2: 3}
#: The reader may ask as often as this before it must have come to an end.
_PATIENCE = 400
_ARRAY_AND_SIZE = 4


class Answers(NamedTuple):
    """Versions of the requests, and the bytes of each response as they come from the socket."""

    metadata_version: int
    offsets_version: int
    fetch_version: int
    metadata: bytes
    offsets: bytes
    fetch: bytes


def _cluster() -> FakeCluster:
    made = FakeCluster({number: FakePartition() for number in WANTED})
    for partition in made.partitions.values():
        for first in range(0, 10, 2):
            partition.append(b"%d" % first, b"%d" % (first + 1))
    for codec in (Compression.GZIP, Compression.ZSTD):
        base = made.partitions[0].high_watermark
        data = write_batch([BatchRecord(base, 5, b"k", bytes(300))], compression=codec)
        made.partitions[0].batches.append((base, base + 1, data))
        made.partitions[0].high_watermark = base + 1
    return made


@cache
def _batches() -> tuple[bytes, ...]:
    return tuple(data for partition in _cluster().partitions.values() for _, _, data in partition.batches)


def _encoded(answer: Any, version: int) -> bytes:
    answer.API_VERSION = version
    answer.with_header(correlation_id=1)
    return bytes(answer.encode(header=True, framed=True))


@cache
def _genuine() -> tuple[Answers, ...]:
    found = []
    cluster = _cluster()
    for metadata, offsets, fetch in ((1, 1, 4), (8, 5, 11), (9, 6, 12), (12, 9, 12), (13, 9, 17)):
        connection = _Connection(Answers(metadata, offsets, fetch, b"", b"", b""), cluster)
        _read(connection)
        found.append(Answers(metadata, offsets, fetch, *connection.first))
    return tuple(found)


_KINDS = ((FetchRequest, 2), (ListOffsetsRequest, 1), (MetadataRequest, 0))


class _Connection:
    """Stands for a `KafkaConnection`: answers with bytes, which the library's parser decodes as it would from a socket."""

    def __init__(self, answers: Answers, cluster: FakeCluster | None = None) -> None:
        self.contacted = True
        self.first = [b"", b"", b""]
        self._answers = answers
        self._cluster = cluster
        self._asked = 0

    def metadata(self, _topic: str | None) -> Any:
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False, include_cluster_authorized_operations=False,
                                  include_topic_authorized_operations=False)  # fmt: skip
        answer = self._answer(request, lambda: self._cluster.metadata(None))
        if isinstance(answer, LogError):
            raise answer
        return answer

    def ask(self, requests: Mapping[int, Callable[[Any], Any]]) -> dict[int, Any]:
        made = {node: request(None) for node, request in requests.items()}
        return {node: self._answer(request, lambda node=node, request=request: self._cluster._answer(node, request))
                for node, request in made.items()}  # fmt: skip

    def close(self) -> None:
        pass

    def _answer(self, request: Any, genuine: Callable[[], Any]) -> Any:
        self._asked += 1
        assert self._asked < _PATIENCE, "the reader asks on and on"
        which = next(number for kind, number in _KINDS if isinstance(request, kind))
        request.API_VERSION = self._answers[which]
        if self._cluster is None:
            data = self._answers[3 + which]
        else:
            data = _encoded(genuine(), request.API_VERSION)
            self.first[which] = self.first[which] or data
        parser = KafkaProtocol(receive_message_max_bytes=1 << 27)
        parser.send_request(request)
        try:
            responses = parser.receive_bytes(data)
        except Exception as error:
            # whatever the library raises here ends the connection, see `kafka_transport`
            return LogUnreachable(repr(error))
        return responses[0][1] if len(responses) == 1 else LogUnreachable("connection closed")


def _read(connection: _Connection) -> None:
    """What the job does with a cluster: its offsets, its names, its records."""
    clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: None)
    with (
        patch("coordinator_core.log.fetch.borrow_connection", lambda *_: connection),
        patch("coordinator_core.log.kafka_topic.time", clock),
        KafkaLog(f"kafka://h:1/{TOPIC}", {"retry_seconds": "0"}, connect_limit_seconds=0) as log,
    ):
        log.topic_ids()
        log.earliest_offsets()
        log.end_offsets()
        for partition, columns in log.read_many({p: (0, end) for p, end in WANTED.items() if p in log.partitions()}):
            assert partition in WANTED
            assert all(damage.reason for damage in columns.damages)
            list(to_log_records(columns, partition))


def _make(rng: Random) -> Answers:
    """One of the three responses mutated: anywhere, or a record batch in it."""
    answers = list(_genuine()[int(rng.random() * len(_genuine()))])
    which = 3 + (2 if rng.random() < 0.7 else int(rng.random() * 2))
    others = [answer[which] for answer in _genuine()]
    data = answers[which]
    if which == 5 and rng.random() < 0.4:
        batch = _batches()[int(rng.random() * len(_batches()))]
        data = data.replace(batch, mutated_frame(rng, batch, _batches())[: len(batch)].ljust(len(batch), b"\x00"))
    else:
        body = mutated(rng, data[8:], [other[8:] for other in others])
        data = data[:8] + body
    size = len(data) - _ARRAY_AND_SIZE if rng.random() < 0.95 else rng.choice((0, -1, 1 << 26, len(data)))
    answers[which] = size.to_bytes(4, "big", signed=True) + data[4:]
    return Answers(*answers)


def check(given: Sequence[Answers]) -> None:
    """Records, or an error of the log."""
    logging.disable(logging.CRITICAL)
    for answers in given:
        try:
            _read(_Connection(answers))
        except LogError as error:
            if not str(error):
                raise


TARGETS = (Target("fetch-answers", _make, check, share=8, chunk=8),)
