"""Reads of partitions: ListOffsets, OffsetForLeaderEpoch, DescribeProducers, and the partitions of a fetch."""

from collections.abc import Callable, Iterable, Mapping

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.producers.entry import ProducerStateEntry
from coordinator_core.protocol.cluster import (
    AbortedFetch,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    IsolationLevel,
    ListedOffset,
    ListOffsetsPosition,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC
from coordinator_core.protocol.topics import (
    ActiveProducer,
    DescribedProducers,
    DescribeProducersRequest,
    DescribeProducersResponse,
    EpochEnd,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    RequestedEpoch,
)
from coordinator_core.segment_log.data_partition import DataPartition, OffsetOutOfRange
from coordinator_core.service.topics.topic_registry import TopicRegistry

#: Producers of a partition of `__consumer_offsets`.
OffsetsProducers = Callable[[int], Iterable[ProducerStateEntry]]

#: Most bytes of one response (`fetch.max.bytes`).
MOST_FETCH_BYTES = 16 * 1024 * 1024
_NO_EPOCH = -1
#: Text of `Errors.UNKNOWN_TOPIC_OR_PARTITION`, which `kafka-transactions` shows.
_NOT_HOSTED = "This server does not host this topic-partition."
_HIGHEST_OFFSET = (1 << 63) - 1


def visible_end(partition: DataPartition, isolation: IsolationLevel) -> int:
    """Return the offset up to which a consumer of this isolation level reads."""
    return partition.last_stable_offset if isolation is IsolationLevel.READ_COMMITTED else partition.high_watermark


def epoch_error(partition: DataPartition, current_leader_epoch: int) -> ErrorCode:
    """Return the error for a leader epoch that the client has seen; -1 is not checked."""
    if current_leader_epoch == _NO_EPOCH or current_leader_epoch == partition.log.leader_epoch:
        return ErrorCode.NONE
    is_older = current_leader_epoch < partition.log.leader_epoch
    return ErrorCode.FENCED_LEADER_EPOCH if is_older else ErrorCode.UNKNOWN_LEADER_EPOCH


# ---- ListOffsets


def list_offsets(topics: TopicRegistry, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Find the offsets of timestamps and positions."""
    empty = [at for at in request.timestamps if topics.without_data(*at)]
    committed = topics.committed(empty) if empty else {}
    return ListOffsetsResponse(
        {at: _list_offset(topics, request, at, timestamp, committed) for at, timestamp in request.timestamps.items()}
    )


def _list_offset(
    topics: TopicRegistry,
    request: ListOffsetsRequest,
    at: TopicPartition,
    timestamp: int,
    committed: Mapping[TopicPartition, int],
) -> ListedOffset:
    if timestamp < request.lowest_timestamp:
        return ListedOffset(ErrorCode.UNSUPPORTED_VERSION)
    partition = topics.partition(*at)
    if partition is None:
        if topics.without_data(*at):
            return _offset_without_data(timestamp, committed.get(at, 0))
        return ListedOffset(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = epoch_error(partition, request.current_leader_epochs.get(at, _NO_EPOCH))
    if error is not ErrorCode.NONE:
        return ListedOffset(error)
    try:
        return _offset_with_data(partition, timestamp, visible_end(partition, request.isolation_level))
    except OSError:
        return ListedOffset(ErrorCode.KAFKA_STORAGE_ERROR)


def _offset_without_data(timestamp: int, committed: int) -> ListedOffset:
    """Answer for a partition without records: its end is the highest committed offset, so that no lag is negative."""
    if timestamp == ListOffsetsPosition.LATEST:
        return ListedOffset(ErrorCode.NONE, committed, leader_epoch=0)
    if timestamp in (ListOffsetsPosition.EARLIEST, ListOffsetsPosition.EARLIEST_LOCAL):
        return ListedOffset(ErrorCode.NONE, 0, leader_epoch=0)
    return ListedOffset(ErrorCode.NONE)


def _end(partition: DataPartition, end: int) -> ListedOffset:
    return ListedOffset(ErrorCode.NONE, end, leader_epoch=partition.log.leader_epoch)


def _start(partition: DataPartition, _end: int) -> ListedOffset:
    start = partition.log_start_offset
    return ListedOffset(ErrorCode.NONE, start, leader_epoch=partition.epoch_of(start))


def _largest_timestamp(partition: DataPartition, _end: int) -> ListedOffset:
    found = partition.largest_timestamp()
    return ListedOffset(ErrorCode.NONE, found.offset, found.timestamp, found.leader_epoch)


def _nothing(_partition: DataPartition, _end: int) -> ListedOffset:
    """No segment is tiered, and none will be uploaded."""
    return ListedOffset(ErrorCode.NONE)


_POSITIONS: Mapping[int, Callable[[DataPartition, int], ListedOffset]] = {
    ListOffsetsPosition.LATEST: _end,
    ListOffsetsPosition.EARLIEST: _start,
    ListOffsetsPosition.MAX_TIMESTAMP: _largest_timestamp,
    ListOffsetsPosition.EARLIEST_LOCAL: _start,
    ListOffsetsPosition.LATEST_TIERED: _nothing,
    ListOffsetsPosition.EARLIEST_PENDING_UPLOAD: _nothing,
}


def _offset_with_data(partition: DataPartition, timestamp: int, end: int) -> ListedOffset:
    position = _POSITIONS.get(timestamp)
    if position is not None:
        return position(partition, end)
    found = partition.find_timestamp(timestamp, end)
    return ListedOffset(ErrorCode.NONE, found.offset, found.timestamp, found.leader_epoch)


# ---- Fetch


def fetch_partitions(topics: TopicRegistry, request: FetchRequest) -> tuple[FetchedPartition, ...]:
    """Read all requested partitions, up to the limits of the request; the first batch may exceed them."""
    budget = min(request.max_bytes, MOST_FETCH_BYTES)
    found: list[FetchedPartition] = []
    for requested in request.partitions:
        fetched = _fetch_partition(topics, requested, request.isolation_level, budget)
        if fetched.records and len(fetched.records) > budget and any(each.records for each in found):
            fetched = fetched._replace(records=b"", aborted=None if fetched.aborted is None else ())
        budget = max(0, budget - len(fetched.records))
        found.append(fetched)
    return tuple(found)


def _fetch_partition(
    topics: TopicRegistry, requested: FetchPartition, isolation: IsolationLevel, budget: int
) -> FetchedPartition:
    topic, topic_id, number = requested.topic, requested.topic_id, requested.partition
    known = topics.find(topic or None, topic_id)
    if known is None or (known.data is None and not topics.without_data(known.name, number)):
        is_unknown_id = known is None and not topic
        error = ErrorCode.UNKNOWN_TOPIC_ID if is_unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return FetchedPartition(topic, topic_id, number, error, aborted=())
    if known.data is None:
        # an empty partition that ends at this offset, so that committed offsets are never out of range
        end = max(requested.offset, 0)
        return FetchedPartition(topic, topic_id, number, ErrorCode.NONE, end, 0, end)
    partition = topics.partition(known.name, number)
    if partition is None:
        return FetchedPartition(topic, topic_id, number, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, aborted=())
    error = epoch_error(partition, requested.current_leader_epoch)
    if error is ErrorCode.NONE:
        try:
            return _read(partition, requested, isolation, budget)
        except OffsetOutOfRange:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        except OSError:
            error = ErrorCode.KAFKA_STORAGE_ERROR
    return FetchedPartition(topic, topic_id, number, error)


def _read(partition: DataPartition, requested: FetchPartition, isolation: IsolationLevel, budget: int) -> FetchedPartition:
    end = visible_end(partition, isolation)
    most_bytes = max(min(requested.max_bytes, budget), 0)
    read = partition.read(requested.offset, most_bytes, end)
    aborted = None
    if isolation is IsolationLevel.READ_COMMITTED:
        rows = partition.aborted(requested.offset, read.upper_offset) if read.data else ()
        aborted = tuple(AbortedFetch(row.producer_id, row.first_offset) for row in rows)
    return FetchedPartition(
        requested.topic,
        requested.topic_id,
        requested.partition,
        ErrorCode.NONE,
        partition.high_watermark,
        partition.log_start_offset,
        partition.last_stable_offset,
        aborted,
        read.data,
    )


# ---- OffsetForLeaderEpoch, DescribeProducers


def ends_of_epochs(topics: TopicRegistry, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """Find the ends of leader epochs."""
    return OffsetForLeaderEpochResponse({at: _end_of_epoch(topics, at, epoch) for at, epoch in request.epochs.items()})


def _end_of_epoch(topics: TopicRegistry, at: TopicPartition, requested: RequestedEpoch) -> EpochEnd:
    partition = topics.partition(*at)
    if partition is None:
        if topics.without_data(*at):
            # every offset is before the end, so that no consumer takes its position for truncated
            return EpochEnd(ErrorCode.NONE, requested.leader_epoch, _HIGHEST_OFFSET)
        return EpochEnd(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = epoch_error(partition, requested.current_leader_epoch)
    return EpochEnd(error, *(partition.end_of_epoch(requested.leader_epoch) if error is ErrorCode.NONE else ()))


def describe_producers(
    topics: TopicRegistry, offsets_producers: OffsetsProducers, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Describe the producers of partitions, those of `__consumer_offsets` included; other partitions without data have none."""
    described = {}
    for at in request.partitions:
        partition = topics.partition(*at)
        if not topics.has_partition(*at):
            message = None if topics.find(at.topic) is not None else _NOT_HOSTED
            described[at] = DescribedProducers(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=message)
        elif partition is not None:
            described[at] = _described(partition.producers.entries.values())
        else:
            described[at] = _described(offsets_producers(at.partition) if at.topic == OFFSETS_TOPIC else ())
    return DescribeProducersResponse(described)


def _described(entries: Iterable[ProducerStateEntry]) -> DescribedProducers:
    return DescribedProducers(
        ErrorCode.NONE,
        tuple(
            ActiveProducer(
                entry.producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
            for entry in entries
        ),
    )
