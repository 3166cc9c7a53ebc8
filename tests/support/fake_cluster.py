"""A cluster without sockets: it answers `KafkaSource` with the library's own messages, and with scripted errors."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.record.memory_records import MemoryRecordsBuilder

from coordinator_core.log.errors import LogError

TOPIC = "__consumer_offsets"
TOPIC_ID = UUID(int=7)
_TOPIC_MISSING, _NOT_LEADER, _FENCED = 3, 6, 74
_ANY_EPOCH = -1


def batch(base_offset: int, *values: bytes) -> bytes:
    """One record batch v2."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1 << 20)
    for value in values:
        builder.append(timestamp=1, key=b"k", value=value)
    builder.close()
    return base_offset.to_bytes(8, "big") + bytes(builder.buffer()[8:])


@dataclass
class FakePartition:
    """A log as batches (base offset, next offset, bytes), and its leader."""

    leader: int = 1
    epoch: int = 0
    earliest: int = 0
    high_watermark: int = 0
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    epoch_starts: dict[int, int] = field(default_factory=dict)

    def elect(self, node: int, *, holding: int | None = None) -> None:
        """Elect a new leader, which may have less than the last one: data from offset `holding` on is lost."""
        self.leader, self.epoch = node, self.epoch + 1
        if holding is not None:
            self.batches = [each for each in self.batches if each[1] <= holding]
            self.high_watermark = holding
        self.epoch_starts[self.epoch] = self.high_watermark

    def end_of_epoch(self, epoch: int) -> int:
        """The end offset of a leader epoch."""
        return min([start for later, start in self.epoch_starts.items() if later > epoch], default=self.high_watermark)

    def append(self, *values: bytes, gap: int = 0) -> None:
        """Append a batch after the last one, and after `gap` offsets that compaction has removed."""
        base = self.high_watermark + gap
        self.high_watermark = base + len(values)
        self.batches.append((base, self.high_watermark, batch(base, *values)))

    def bytes_from(self, offset: int) -> bytes:
        """The bytes that a broker would read from disk, without a size limit."""
        return b"".join(data for _, end, data in self.batches if end > offset)


class FakeCluster:
    """Stands for a `KafkaConnection`. `script` has actions before each request of a round; `rounds` has the requests."""

    def __init__(self, partitions: Mapping[int, FakePartition]) -> None:
        self.partitions = dict(partitions)
        self.topic_id = TOPIC_ID
        self.missing = False
        self.contacted = True
        self.closed = False
        self.script: deque[Callable[[], None]] = deque()
        self.errors: dict[int, int] = {}
        self.node_errors: dict[int, LogError] = {}
        self.throttled = 0
        self.rounds: list[dict[int, list[int]]] = []
        self.lookups = 0
        #: Rounds of requests for metadata to leaders, and the answers of nodes that have old metadata.
        self.counted = 0
        self.stale: dict[int, Any] = {}

    def metadata(self, _topics: Sequence[str] | None) -> Any:
        """Answer at the newest version."""
        self.lookups += 1
        return self.current_metadata()

    def current_metadata(self) -> Any:
        """What a broker with the newest metadata answers."""
        partitions = [
            MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
                error_code=0, partition_index=number, leader_id=each.leader, leader_epoch=each.epoch
            )
            for number, each in self.partitions.items()
        ]
        topic = MetadataResponse.MetadataResponseTopic(
            error_code=_TOPIC_MISSING if self.missing else 0, name=TOPIC, topic_id=self.topic_id, partitions=partitions
        )
        response = MetadataResponse(brokers=[], topics=[topic])
        response.API_VERSION = 13
        return response

    def send_all(self, requests: Mapping[int, Callable[[Any], Any]]) -> dict[int, Any]:
        """Answer one round of requests."""
        sent = {node: request(_Versions()) for node, request in requests.items()}
        if any(isinstance(request, MetadataRequest) for request in sent.values()):
            self.counted += 1
            return {node: self.node_errors.get(node) or self.stale.get(node) or self.current_metadata() for node in sent}
        if self.script:
            self.script.popleft()()
        self.rounds.append({node: [_number(each) for each in request.topics[0].partitions] for node, request in sent.items()})
        return {node: self.node_errors.get(node) or self._answer(node, request) for node, request in sent.items()}

    def close(self) -> None:
        self.closed = True

    def _answer(self, node: int, request: Any) -> Any:
        fetching = isinstance(request, FetchRequest)
        if fetching and self.throttled:
            self.throttled -= 1
            return FetchResponse(error_code=0, throttle_time_ms=10, responses=[])
        parts, budget = [], request.max_bytes if fetching else 0
        for wanted in request.topics[0].partitions:
            held = self.partitions[_number(wanted)]
            if isinstance(request, OffsetForLeaderEpochRequest):
                parts.append(_ended(wanted, held))
                continue
            knows = wanted.current_leader_epoch in (_ANY_EPOCH, held.epoch)
            current = _NOT_LEADER if held.leader != node else 0 if knows else _FENCED
            code = self.errors.get(_number(wanted), current)
            if not fetching:
                parts.append(_listed(wanted, held, code))
                continue
            if not code and not held.earliest <= wanted.fetch_offset <= held.high_watermark:
                code = 1
            data = b"" if code else held.bytes_from(wanted.fetch_offset)[: min(wanted.partition_max_bytes, budget)]
            budget -= len(data)
            parts.append(
                FetchResponse.FetchableTopicResponse.PartitionData(
                    partition_index=_number(wanted), error_code=code, high_watermark=held.high_watermark, records=data
                )
            )
        if fetching:
            return FetchResponse(error_code=0, responses=[FetchResponse.FetchableTopicResponse(partitions=parts)])
        if isinstance(request, OffsetForLeaderEpochRequest):
            topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=TOPIC, partitions=parts)
            return OffsetForLeaderEpochResponse(topics=[topic])
        return ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name=TOPIC, partitions=parts)])


class _Versions:
    """The versions of a broker that has the newest one of every request."""

    def api_version(self, request: Any) -> int:
        return int(request.max_version)


def _number(partition: Any) -> int:
    return int(partition.partition if hasattr(partition, "partition") else partition.partition_index)


def _listed(wanted: Any, held: FakePartition, code: int) -> Any:
    offset = held.earliest if wanted.timestamp == -2 else held.high_watermark
    return ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index, error_code=code, offset=-1 if code else offset, leader_epoch=held.epoch
    )


def _ended(wanted: Any, held: FakePartition) -> Any:
    return OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult.EpochEndOffset(
        error_code=0 if wanted.current_leader_epoch == held.epoch else _FENCED,
        partition=wanted.partition,
        leader_epoch=wanted.leader_epoch,
        end_offset=held.end_of_epoch(wanted.leader_epoch),
    )
