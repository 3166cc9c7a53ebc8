"""Requests of a reader to the leaders of a topic's partitions, as messages of the client library."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from kafka.protocol.consumer import FetchRequest, FetchResponse, OffsetForLeaderEpochRequest

from coordinator_core.sources.kafka_connection import RequestFor
from coordinator_core.sources.kafka_topic import Leader, Topic
from coordinator_core.sources.list_offsets import ListOffsets

EARLIEST, LATEST = -2, -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1

_CONSUMER = -1
#: Last version with topic names. Version 13 and later have the topic id, so brokers reject requests for a recreated topic.
_LAST_FETCH_BY_NAME = 12
_LAST_FETCH = 17
_LAST_OFFSET_FOR_LEADER_EPOCH = 4


def fetch_request(
    topics: Sequence[tuple[Topic, Sequence[tuple[int, int, int, int]]]],
    response_bytes: int,
    isolation_level: int = READ_UNCOMMITTED,
) -> RequestFor:
    """Build a Fetch for partitions of one leader.

    Each topic has (partition, leader epoch, offset, bytes) of its partitions, in the order in which brokers fill the response.
    """
    fetched = [
        FetchRequest.FetchTopic(
            topic=topic.name,
            topic_id=topic.topic_id or UUID(int=0),
            partitions=[
                FetchRequest.FetchTopic.FetchPartition(
                    partition=partition,
                    current_leader_epoch=epoch,
                    fetch_offset=position,
                    last_fetched_epoch=-1,
                    log_start_offset=-1,
                    partition_max_bytes=max_bytes,
                )
                for partition, epoch, position, max_bytes in wanted
            ],
        )
        for topic, wanted in topics
    ]
    largest = max(max_bytes for _, wanted in topics for *_, max_bytes in wanted)
    return lambda _versions: FetchRequest(
        replica_id=_CONSUMER,
        # Requested offsets are below the high watermark: the broker has no reason to wait.
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=max(response_bytes, largest),
        isolation_level=isolation_level,
        session_id=0,
        session_epoch=-1,
        topics=fetched,
        forgotten_topics_data=[],
        rack_id="",
        max_version=_LAST_FETCH if all(topic.topic_id for topic, _ in topics) else _LAST_FETCH_BY_NAME,
    )


def offsets_request(
    topics: Mapping[str, Mapping[int, Leader]],
    which: int | Mapping[tuple[str, int], int],
    isolation_level: int = READ_UNCOMMITTED,
) -> RequestFor:
    """Build a ListOffsets for partitions of one leader.

    `which` is EARLIEST, LATEST or a timestamp in ms; or one of these for each (topic, partition). LATEST with READ_COMMITTED is
    the last stable offset.
    """
    return lambda _versions: ListOffsets(topics, which, isolation_level)


def epoch_ends_request(topic: str, leaders: Mapping[int, Leader], epochs: Mapping[int, int]) -> RequestFor:
    """Build an OffsetForLeaderEpoch for the end of each partition's epoch in its current leader's log (KIP-320)."""
    partitions = [
        OffsetForLeaderEpochRequest.OffsetForLeaderTopic.OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=leader.epoch, leader_epoch=epochs[partition]
        )
        for partition, leader in leaders.items()
    ]
    wanted = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic, partitions=partitions)
    return lambda _versions: OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER, topics=[wanted], max_version=_LAST_OFFSET_FOR_LEADER_EPOCH
    )


def parts(response: Any, first: int) -> Iterator[tuple[int, Any, bool]]:
    """Yield (partition, its part, whether it is `first`) for each partition of a response."""
    for topic in (response.responses if isinstance(response, FetchResponse) else response.topics) or ():
        for part in topic.partitions or ():
            number = part.partition if hasattr(part, "partition") else part.partition_index
            yield number, part, number == first
