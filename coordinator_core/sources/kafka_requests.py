"""The requests that a reader sends to the leaders of a topic's partitions, as messages of the client library."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from kafka.protocol.consumer import FetchRequest, FetchResponse, ListOffsetsRequest, OffsetForLeaderEpochRequest

from coordinator_core.sources.kafka_connection import RequestFor
from coordinator_core.sources.kafka_topic import Leader, Topic

EARLIEST, LATEST = -2, -1

_READ_UNCOMMITTED = 0
_CONSUMER = -1
#: The last version that names topics; from 13 on the topic's id stands there, and a recreated topic is refused.
_LAST_FETCH_BY_NAME = 12
_LAST_FETCH = 17
_LAST_LIST_OFFSETS = 9
_LAST_OFFSET_FOR_LEADER_EPOCH = 4


def fetch_request(topic: Topic, wanted: Sequence[tuple[int, int, int, int]], response_bytes: int) -> RequestFor:
    """Fetch: `wanted` is (partition, leader epoch, offset, bytes) in the order in which the response is filled."""
    partitions = [
        FetchRequest.FetchTopic.FetchPartition(
            partition=partition,
            current_leader_epoch=epoch,
            fetch_offset=position,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=max_bytes,
        )
        for partition, epoch, position, max_bytes in wanted
    ]
    asked = FetchRequest.FetchTopic(topic=topic.name, topic_id=topic.topic_id or UUID(int=0), partitions=partitions)
    return lambda _versions: FetchRequest(
        replica_id=_CONSUMER,
        # Only offsets below the high watermark are asked for: there is nothing to wait for.
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=max(response_bytes, *(max_bytes for *_, max_bytes in wanted)),
        isolation_level=_READ_UNCOMMITTED,
        session_id=0,
        session_epoch=-1,
        topics=[asked],
        forgotten_topics_data=[],
        rack_id="",
        max_version=_LAST_FETCH if topic.topic_id else _LAST_FETCH_BY_NAME,
    )


def offsets_request(topic: str, asked: Mapping[int, Leader], which: int) -> RequestFor:
    """ListOffsets: `which` is EARLIEST or LATEST."""
    partitions = [
        ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=leader.epoch, timestamp=which
        )
        for partition, leader in asked.items()
    ]
    wanted = ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=partitions)
    return lambda _versions: ListOffsetsRequest(
        replica_id=_CONSUMER, isolation_level=_READ_UNCOMMITTED, topics=[wanted], max_version=_LAST_LIST_OFFSETS
    )


def epoch_ends_request(topic: str, asked: Mapping[int, Leader], epochs: Mapping[int, int]) -> RequestFor:
    """OffsetForLeaderEpoch: where the log of each partition's epoch ends, to its leader of today (KIP-320)."""
    partitions = [
        OffsetForLeaderEpochRequest.OffsetForLeaderTopic.OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=leader.epoch, leader_epoch=epochs[partition]
        )
        for partition, leader in asked.items()
    ]
    wanted = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic, partitions=partitions)
    return lambda _versions: OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER, topics=[wanted], max_version=_LAST_OFFSET_FOR_LEADER_EPOCH
    )


def parts(response: Any, first: int) -> Iterator[tuple[int, Any, bool]]:
    """What a response says of each partition: (partition, its part, is it `first`?)."""
    for topic in (response.responses if isinstance(response, FetchResponse) else response.topics) or ():
        for part in topic.partitions or ():
            number = part.partition if hasattr(part, "partition") else part.partition_index
            yield number, part, number == first
