"""Topics with data as a service: requests of producers, consumers and admin tools, markers, fsyncs, retention, compaction."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.group_coordinator.group_configs import describe_configs
from coordinator_core.producers.append import Marker, ProducerRejected
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import Api, NodeRequest, Response
from coordinator_core.protocol.cluster import FetchRequest, ProduceRequest
from coordinator_core.protocol.configs import DescribeConfigsRequest, DescribeConfigsResponse, ResourceType
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import TxnMarkerResponse
from coordinator_core.protocol.topics import DeletedRecords, DeleteRecordsRequest, DeleteRecordsResponse
from coordinator_core.segment_log.data_partition import DataPartition, OffsetOutOfRange
from coordinator_core.segment_log.errors import PartitionFailed, SegmentLogError
from coordinator_core.segment_log.topic_store import DataTopic
from coordinator_core.service.runtime.background import BackgroundTasks
from coordinator_core.service.runtime.flusher import Flusher
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.service.runtime.reply_handles import ReplyHandle
from coordinator_core.service.settings import Fsync, ServiceSettings
from coordinator_core.service.topics.fetching import Fetching
from coordinator_core.service.topics.node_configs import describe_node
from coordinator_core.service.topics.produce import Producing
from coordinator_core.service.topics.topic_admin import TopicAdmin
from coordinator_core.service.topics.topic_reads import (
    OffsetsProducers,
    describe_producers,
    ends_of_epochs,
    list_offsets,
)
from coordinator_core.service.topics.topic_registry import TopicRegistry
from coordinator_core.wire import PartitionMarker

_FLUSHERS = 2
_HIGH_WATERMARK = -1


class TopicService:
    """Handles requests about the topics of the registry, in the event loop that calls `start`.

    `forget_topic` removes the committed offsets of a deleted topic, `offsets_producers` has the producers of a partition of
    `__consumer_offsets`.
    """

    def __init__(
        self,
        topics: TopicRegistry,
        settings: ServiceSettings,
        config: CoordinatorConfig,
        now_ms: Callable[[], int],
        observer: Observer,
        background: BackgroundTasks,
        forget_topic: Callable[[str], None],
        offsets_producers: OffsetsProducers,
    ) -> None:
        self.topics = topics
        self._settings = settings
        self._config = config
        self._now_ms = now_ms
        self._observer = observer
        self._background = background
        self._flusher = None if topics.store is None else Flusher(topics.store, _FLUSHERS)
        self._cleaner = ThreadPoolExecutor(1, "clean topics")
        self._forget_topic = forget_topic
        self.offsets_producers = offsets_producers
        self._dirty: set[DataPartition] = set()
        #: Failed partitions that were reported.
        self._reported: set[DataPartition] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.fetching = Fetching(topics, settings.max_incremental_fetch_session_cache_slots, now_ms)
        self.fetches = self.fetching.purgatory
        self.producing = Producing(
            topics,
            now_ms,
            self._complete,
            self._report,
            verification_enabled=settings.transaction_partition_verification_enable,
        )
        self.admin = TopicAdmin(topics, settings.num_partitions, settings.node_id, self._deleted)

    def start(self) -> None:
        """Start the periodic tasks."""
        if self.topics.store is None:
            return
        settings = self._settings
        if settings.fsync is Fsync.INTERVAL:
            self._repeat("topic-flusher", settings.fsync_interval_ms, self._flush_dirty)
        if settings.log_cleaner_interval_ms:
            self._repeat("topic-cleaner", settings.log_cleaner_interval_ms, self._clean)
        self._repeat("topic-retention", settings.log_retention_check_interval_ms, self._remove_old_segments)

    def _repeat(self, name: str, interval_ms: int, run: Callable[[], Awaitable[None]]) -> None:
        self._tasks.add(self._background.repeat(name, interval_ms / 1000, run))

    async def stop(self) -> None:
        """Answer waiting fetches, end the periodic tasks and flush; the store is left open."""
        self.fetches.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._cleaner.shutdown(wait=True)
        if self._flusher is not None:
            await self._flush_dirty()
            self._flusher.close()

    def handle(self, request: NodeRequest, reply_handle: ReplyHandle) -> None:
        """Handle a request of an API in `HANDLERS`. The reply handle gets one response."""
        HANDLERS[type(request)](self, request, reply_handle)

    # ---- records

    def produce(self, request: ProduceRequest, reply_handle: ReplyHandle) -> None:
        self.producing.produce(request, reply_handle)

    def fetch(self, request: FetchRequest, reply_handle: ReplyHandle) -> None:
        self.fetching.fetch(request, reply_handle)

    def delete_records(self, request: DeleteRecordsRequest, reply_handle: ReplyHandle) -> None:
        deleted = {at: self._delete_records(at, offset) for at, offset in request.offsets.items()}
        store = self.topics.store
        if store is not None and any(each.error is ErrorCode.NONE for each in deleted.values()):
            try:
                store.store_start_offsets()
                for at, each in deleted.items():
                    partition = self.topics.partition(*at)
                    if partition is not None and each.error is ErrorCode.NONE:
                        partition.log.remove_before(each.low_watermark)
            except (OSError, SegmentLogError):
                deleted = dict.fromkeys(deleted, DeletedRecords(ErrorCode.KAFKA_STORAGE_ERROR))
        reply_handle.answer(DeleteRecordsResponse(deleted))

    def _delete_records(self, at: TopicPartition, offset: int) -> DeletedRecords:
        partition = self.topics.partition(*at)
        if partition is None:
            return DeletedRecords(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not partition.config.is_deleted:
            return DeletedRecords(ErrorCode.POLICY_VIOLATION)
        try:
            start = partition.delete_records(partition.high_watermark if offset == _HIGH_WATERMARK else offset)
        except OffsetOutOfRange:
            return DeletedRecords(ErrorCode.OFFSET_OUT_OF_RANGE)
        return DeletedRecords(ErrorCode.NONE, start)

    def describe_configs(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        """Describe the configs of a topic, of the node or of groups."""
        if request.resource_type == ResourceType.TOPIC:
            return self.admin.describe_topic(request)
        if request.resource_type == ResourceType.BROKER:
            return describe_node(self._settings, request)
        return describe_configs(self._config, request)

    def _deleted(self, topic: DataTopic) -> None:
        for partition in topic.partitions:
            self._dirty.discard(partition)
            self._reported.discard(partition)
            self.fetches.changed(partition)
        self._forget_topic(topic.name)

    # ---- transactions

    def write_marker(self, part: PartitionMarker, reply_handle: ReplyHandle) -> None:
        """Write a transaction marker to a partition with data; the response has Kafka's error (`MarkerWriter`).

        A partition without data needs no marker: UNSUPPORTED_FOR_MESSAGE_FORMAT ends the sending.
        """
        request, found = part.marker, self.topics.partition(part.topic, part.partition)
        if found is None:
            is_known = self.topics.has_partition(part.topic, part.partition)
            error = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            reply_handle.answer(TxnMarkerResponse(error))
            return
        now_ms = self._now_ms()
        marker = Marker(
            *request.producer,
            request.control_type,
            request.coordinator_epoch,
            found.log.end_offset,
            now_ms,
            request.transaction_version,
        )
        try:
            found.append_marker(marker, now_ms)
        except ProducerRejected as rejected:
            reply_handle.answer(TxnMarkerResponse(ErrorCode(rejected.error)))
            return
        except SegmentLogError as error:
            self._report(found, error)
            reply_handle.answer(TxnMarkerResponse(ErrorCode.KAFKA_STORAGE_ERROR))
            return

        def written(errors: Mapping[DataPartition, ErrorCode]) -> None:
            self.fetches.changed(found)
            reply_handle.answer(TxnMarkerResponse(errors.get(found, ErrorCode.NONE)))

        self._complete([found], written)

    # ---- durability

    def _complete(self, partitions: Sequence[DataPartition], done: Callable[[Mapping[DataPartition, ErrorCode]], None]) -> None:
        """Make appended records visible: now, or once they are durable with `fsync` always."""
        if self._settings.fsync is not Fsync.ALWAYS or self._flusher is None:
            self._dirty.update(partitions)
            for partition in partitions:
                self._advance(partition, partition.log.end_offset, partition.appended_bytes)
            done({})
            return
        task = asyncio.create_task(self._flush_and_complete(partitions, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _flush_and_complete(
        self, partitions: Sequence[DataPartition], done: Callable[[Mapping[DataPartition, ErrorCode]], None]
    ) -> None:
        assert self._flusher is not None
        ends = {partition: (partition.log.end_offset, partition.appended_bytes) for partition in partitions}
        results = await asyncio.gather(*(self._flusher.flush(each) for each in ends), return_exceptions=True)
        errors = {}
        for (partition, end), result in zip(ends.items(), results, strict=True):
            if result is None:
                self._advance(partition, *end)
            else:
                self._report(partition, result)
                errors[partition] = ErrorCode.KAFKA_STORAGE_ERROR
        done(errors)

    def _advance(self, partition: DataPartition, end_offset: int, appended_bytes: int) -> None:
        size = partition.advance(end_offset, appended_bytes)
        if size:
            self.fetches.appended(partition, size)

    async def _flush_dirty(self) -> None:
        dirty, self._dirty = list(self._dirty), set()
        if self._flusher is not None:
            results = await asyncio.gather(*(self._flusher.flush(each) for each in dirty), return_exceptions=True)
            for partition, result in zip(dirty, results, strict=True):
                if result is not None:
                    self._report(partition, result)

    def _report(self, partition: DataPartition, error: BaseException) -> None:
        """Report an error of an append or an fsync; a failed partition is reported once."""
        at = partition.log.topic, partition.log.partition
        name = "-".join(map(str, at))
        if self.topics.partition(*at) is not partition:
            # deleted meanwhile
            return
        if not isinstance(error, SegmentLogError):
            # the appended records may not be on disk
            self._observer.bug(f"fsync of {name}", error)
            error = partition.log.fail(f"fsync: {type(error).__name__}: {error}")
        if not isinstance(error, PartitionFailed):
            self._observer.append_refused(name, 1, str(error))
        elif partition not in self._reported:
            self._reported.add(partition)
            self._observer.failed(name, str(error))

    # ---- upkeep

    async def _clean(self) -> None:
        store = self.topics.store
        if store is None:
            return
        try:
            await asyncio.get_running_loop().run_in_executor(self._cleaner, store.clean, self._now_ms())
        except (SegmentLogError, OSError) as error:
            self._observer.cleaning_failed(str(error))

    async def _remove_old_segments(self) -> None:
        if self.topics.store is not None:
            self.topics.store.remove_old_segments(self._now_ms(), self._report)


RequestT = TypeVar("RequestT", bound=NodeRequest)
ResponseT = TypeVar("ResponseT", bound=Response)


def _later(
    api: Api[RequestT, ResponseT], handle: Callable[[TopicService, RequestT, ReplyHandle], None]
) -> tuple[type[NodeRequest], Callable[..., None]]:
    """Return an entry for a handler that may answer later."""
    return api.request, handle


def _now(
    api: Api[RequestT, ResponseT], handle: Callable[[TopicService, RequestT], ResponseT]
) -> tuple[type[NodeRequest], Callable[..., None]]:
    """Return an entry for a handler that returns the response."""

    def answer(service: TopicService, request: RequestT, reply_handle: ReplyHandle) -> None:
        reply_handle.answer(handle(service, request))

    return api.request, answer


#: Handlers by the type of the request.
HANDLERS = dict(
    (
        _later(apis.PRODUCE, TopicService.produce),
        _later(apis.FETCH, TopicService.fetch),
        _later(apis.DELETE_RECORDS, TopicService.delete_records),
        _now(apis.LIST_OFFSETS, lambda service, request: list_offsets(service.topics, request)),
        _now(apis.OFFSET_FOR_LEADER_EPOCH, lambda service, request: ends_of_epochs(service.topics, request)),
        _now(
            apis.DESCRIBE_PRODUCERS,
            lambda service, request: describe_producers(service.topics, service.offsets_producers, request),
        ),
        _now(apis.DESCRIBE_CONFIGS, TopicService.describe_configs),
        _now(apis.CREATE_TOPICS, lambda service, request: service.admin.create_topics(request)),
        _now(apis.DELETE_TOPICS, lambda service, request: service.admin.delete_topics(request)),
        _now(apis.CREATE_PARTITIONS, lambda service, request: service.admin.create_partitions(request)),
        _now(apis.INCREMENTAL_ALTER_CONFIGS, lambda service, request: service.admin.alter_configs(request)),
        _now(apis.DESCRIBE_LOG_DIRS, lambda service, request: service.admin.describe_log_dirs(request)),
    )
)
