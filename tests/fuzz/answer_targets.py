"""Responses of brokers, mutated, through the client library's decoder and the reader of `kafka://`, without sockets."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

from fake_cluster import TOPIC, FakeCluster, FakePartition
from fuzz_mutations import mutated, mutated_frame
from fuzz_target import Target
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.parser import KafkaProtocol

from coordinator_core.log.columns import to_log_records
from coordinator_core.log.compression import Compression
from coordinator_core.log.errors import LogError, LogUnreachable
from coordinator_core.log.record_batch import BatchRecord, write_batch
from coordinator_core.sources.kafka import KafkaSource

#: Partition → the offset up to which it is read.
WANTED = {0: 12, 1: 10, 2: 3}
#: Limit for the requests of the reader; it must finish within it.
_PATIENCE = 400
_SIZE_BYTES = 4


class Answers(NamedTuple):
    """For each of `_REQUESTS`, the version of the request and the bytes of the response as they arrive on the socket."""

    versions: tuple[int, ...]
    responses: tuple[bytes, ...]


_REQUESTS = (MetadataRequest, ListOffsetsRequest, FetchRequest, OffsetForLeaderEpochRequest)
_FETCH = _REQUESTS.index(FetchRequest)

#: Brokers of 0.10, 2.0, 2.4, 2.8 and 4.x.
_VERSIONS = ((1, 1, 4, 0), (8, 5, 11, 2), (9, 6, 12, 3), (12, 9, 12, 4), (13, 9, 17, 4))


def _cluster() -> FakeCluster:
    made = FakeCluster({number: FakePartition(epoch=1) for number in WANTED})
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
    for versions in _VERSIONS:
        connection = _Connection(Answers(versions, ()), cluster)
        _read(connection)
        found.append(Answers(versions, tuple(connection.first)))
    return tuple(found)


class _Connection:
    """Stands for a `KafkaConnection`: answers with bytes, which the library's parser decodes as it would from a socket."""

    def __init__(self, answers: Answers, cluster: FakeCluster | None = None) -> None:
        self.contacted = True
        self.first = [b""] * len(_REQUESTS)
        self._answers = answers
        self._cluster = cluster
        self._requests = 0

    def metadata(self, _topic: str | None) -> Any:
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False, include_cluster_authorized_operations=False,
                                  include_topic_authorized_operations=False)  # fmt: skip
        answer = self._answer(request, lambda: self._alive.metadata(None))
        if isinstance(answer, LogError):
            raise answer
        return answer

    def send_all(self, requests: Mapping[int, Callable[[Any], Any]]) -> dict[int, Any]:
        made = {node: request(None) for node, request in requests.items()}
        return {node: self._answer(request, partial(self._from_cluster, node, request)) for node, request in made.items()}

    def close(self) -> None:
        pass

    @property
    def _alive(self) -> FakeCluster:
        assert self._cluster is not None
        return self._cluster

    def _from_cluster(self, node: int, request: Any) -> Any:
        return self._alive._answer(node, request)

    def _answer(self, request: Any, genuine: Callable[[], Any]) -> Any:
        self._requests += 1
        assert self._requests < _PATIENCE, "the reader sends requests without end"
        which = next(number for number, kind in enumerate(_REQUESTS) if isinstance(request, kind))
        request.API_VERSION = self._answers.versions[which]
        if self._cluster is None:
            data = self._answers.responses[which]
        else:
            data = _encoded(genuine(), request.API_VERSION)
            self.first[which] = self.first[which] or data
        parser = KafkaProtocol(receive_message_max_bytes=1 << 27)
        parser.send_request(request)
        try:
            responses = parser.receive_bytes(data)
        except Exception as error:
            # any exception of the library ends the connection here, see `kafka_transport`
            return LogUnreachable(repr(error))
        return responses[0][1] if len(responses) == 1 else LogUnreachable("connection closed")


def _read(connection: _Connection) -> None:
    """Read offsets, names and records of a cluster as the job does."""
    clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: None)
    with (
        patch("coordinator_core.sources.kafka.borrow_connection", lambda *_: connection),
        patch("coordinator_core.sources.kafka_topic.time", clock),
        KafkaSource(f"kafka://h:1/{TOPIC}", {"retry_seconds": "0"}, connect_limit_seconds=0) as log,
    ):
        log.topic_ids()
        log.earliest_offsets()
        ends, epochs = log.end_offsets(), log.leader_epochs()
        log.truncated_partitions({partition: (ends[partition], 0) for partition in epochs.keys() & ends.keys()})
        for partition, columns in log.read_many({p: (0, end) for p, end in WANTED.items() if p in log.partitions()}):
            assert partition in WANTED
            assert all(damage.reason for damage in columns.damages)
            list(to_log_records(columns, partition))


def _make(rng: Random) -> Answers:
    """Mutate one of the responses: anywhere, or a record batch in it."""
    genuine = _genuine()
    versions, responses = genuine[int(rng.random() * len(genuine))]
    which = _FETCH if rng.random() < 0.6 else int(rng.random() * len(responses))
    data = responses[which]
    if which == _FETCH and rng.random() < 0.4:
        batch = _batches()[int(rng.random() * len(_batches()))]
        data = data.replace(batch, mutated_frame(rng, batch, _batches())[: len(batch)].ljust(len(batch), b"\x00"))
    else:
        data = data[:8] + mutated(rng, data[8:], [each.responses[which][8:] for each in genuine])
    size = len(data) - _SIZE_BYTES if rng.random() < 0.95 else rng.choice((0, -1, 1 << 26, len(data)))
    data = size.to_bytes(_SIZE_BYTES, "big", signed=True) + data[_SIZE_BYTES:]
    return Answers(versions, (*responses[:which], data, *responses[which + 1 :]))


def check(given: Sequence[Answers]) -> None:
    """Require records, or an error of the log."""
    for answers in given:
        try:
            _read(_Connection(answers))
        except LogError as error:
            if not str(error):
                raise


TARGETS = (Target("fetch-answers", _make, check, share=8, chunk=8),)
