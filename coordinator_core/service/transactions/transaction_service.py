"""The transaction coordinator as a service: loops of `__transaction_state`, delivery of markers, blocks of producer ids."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.api import Response, TransactionRequest
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.internal_topics import TRANSACTION_STATE_TOPIC
from coordinator_core.protocol.offsets import TxnMarkerResponse
from coordinator_core.protocol.transactions import ListTransactionsRequest, ListTransactionsResponse
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.service.runtime.background import BackgroundTasks
from coordinator_core.service.runtime.events import RequestReceived, ShardCalled
from coordinator_core.service.runtime.log_interface import CoordinatorLog
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.service.runtime.partition_loops import PartitionLoops
from coordinator_core.service.runtime.reply_handles import GatheredReplies, ReplyHandle
from coordinator_core.service.runtime.shard_interface import CoordinatorTraits
from coordinator_core.service.settings import ServiceSettings
from coordinator_core.service.topics.cluster import TransactionTopic
from coordinator_core.service.transactions.marker_router import MarkerWriter
from coordinator_core.transaction_coordinator.config import TransactionConfig
from coordinator_core.transaction_coordinator.context import TransactionTopology
from coordinator_core.transaction_coordinator.describe import merge_lists
from coordinator_core.transaction_coordinator.producer_ids import ProducerIdManager, ProducerIdsBlock
from coordinator_core.transaction_coordinator.result import MarkerBatch, TransactionResult, TransactionWrite
from coordinator_core.transaction_coordinator.shard import TransactionShard
from coordinator_core.transaction_coordinator.transaction_coordinator import TransactionCoordinator
from coordinator_core.wire import PartitionMarker

#: The log takes further appends after a refused one, so clients and completions try again.
_REFUSED = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


@dataclass(frozen=True, slots=True)
class TransactionLogConfig:
    """The parts of a transaction coordinator: its log, its configuration, and `allocate_block`, which may block."""

    log: CoordinatorLog
    config: TransactionConfig
    allocate_block: Callable[[], ProducerIdsBlock]

    @property
    def topic(self) -> TransactionTopic:
        """The topic in metadata, and the level of transactions that clients see."""
        return TransactionTopic(self.log.partitions, self.log.topic_id, self.config.behaviour.transaction_version)


def _label(partition: int) -> str:
    return f"{TRANSACTION_STATE_TOPIC}-{partition}"


def _batch_of(write: TransactionWrite) -> AppendBatch:
    return AppendBatch(write.encoded)


class TransactionService:
    """One loop for each partition of `__transaction_state`. `write_marker` delivers markers to the partitions of this node."""

    def __init__(
        self,
        parts: TransactionLogConfig,
        settings: ServiceSettings,
        now_ms: Callable[[], int],
        observer: Observer,
        background: BackgroundTasks,
        topology: TransactionTopology,
        write_marker: MarkerWriter,
    ) -> None:
        self.config = parts.config
        self._observer = observer
        self._allocate_block = parts.allocate_block
        self._write_marker = write_marker
        self.producer_ids = ProducerIdManager(self._request_block, now_ms)
        #: The state machines by log partition.
        self.shards = {
            number: TransactionShard(number, parts.config, self.producer_ids, topology) for number in range(parts.log.partitions)
        }
        self._coordinator = TransactionCoordinator(parts.config, self.shards, self.producer_ids, topology)
        self._loops: PartitionLoops[TransactionResult] = PartitionLoops(
            CoordinatorTraits("transaction-", _label, self._take_effects, _batch_of, _REFUSED),
            self.shards,
            settings,
            parts.log,
            now_ms,
            observer,
            background,
        )
        self._allocations: set[asyncio.Task[None]] = set()

    # ---- start and stop

    def start(self) -> None:
        """Load every partition, and allocate the first producer ids."""
        self._loops.start()
        self.producer_ids.request()

    @property
    def is_quiet(self) -> bool:
        """Whether no request is in progress."""
        return self._loops.is_quiet

    async def stop(self) -> None:
        """Answer waiting requests NOT_COORDINATOR, end the loops and flush the log, which is left open."""
        self._coordinator.active = False
        await self._loops.stop()
        await asyncio.gather(*self._allocations, return_exceptions=True)

    @property
    def partitions_by_status(self) -> Mapping[str, int]:
        """Number of log partitions by status, without zeros."""
        return self._loops.by_status

    @property
    def failures(self) -> Mapping[int, str]:
        """Reasons of the failed log partitions."""
        return self._loops.failures

    # ---- requests

    def submit(self, request: TransactionRequest, reply_handle: ReplyHandle) -> None:
        """Submit a request to the partition of its id, ListTransactions to all. The reply handle gets one response."""
        if isinstance(request, ListTransactionsRequest):
            self._submit_to_all(request, reply_handle)
            return
        routed = self._coordinator.route(request)
        if isinstance(routed, TransactionShard):
            self._loops.by_partition[routed.partition].submit(RequestReceived(request, reply_handle, perf_counter()))
        else:
            reply_handle.answer(routed)

    def _submit_to_all(self, request: ListTransactionsRequest, reply_handle: ReplyHandle) -> None:
        def answer(responses: list[Response]) -> None:
            reply_handle.answer(merge_lists(each for each in responses if isinstance(each, ListTransactionsResponse)))

        loops = self._loops.by_partition.values()
        for loop, part in zip(loops, GatheredReplies(len(loops), answer).handles(), strict=True):
            loop.submit(RequestReceived(request, part, perf_counter()))

    # ---- effects

    def _take_effects(self, partition: int, result: TransactionResult) -> None:
        for batch in result.markers:
            self._write_markers(partition, batch)
        if result.events:
            self._observer.transaction_events(_label(partition), result.events)

    def _write_markers(self, partition: int, batch: MarkerBatch) -> None:
        """Deliver the markers of a transaction, and report their errors to its shard together."""
        targets = sorted(batch.partitions)
        gathered = GatheredReplies(len(targets), partial(self._markers_written, partition, batch, targets))
        for target, handle in zip(targets, gathered.handles(), strict=True):
            self._write_marker(PartitionMarker(*target, batch.marker), handle)

    def _markers_written(
        self, partition: int, batch: MarkerBatch, targets: list[TopicPartition], responses: list[Response]
    ) -> None:
        errors = {
            target: response.error
            for target, response in zip(targets, responses, strict=True)
            if isinstance(response, TxnMarkerResponse)
        }
        report = partial(self.shards[partition].markers_written, batch, errors)
        self._loops.by_partition[partition].submit(ShardCalled("markers", report))

    def _request_block(self) -> None:
        task = asyncio.get_running_loop().create_task(self._allocate(), name="producer ids")
        self._allocations.add(task)
        task.add_done_callback(self._allocations.discard)

    async def _allocate(self) -> None:
        try:
            block = await asyncio.to_thread(self._allocate_block)
        except Exception as error:
            self._observer.bug("allocation of producer ids", error)
            self.producer_ids.allocation_failed()
            return
        self.producer_ids.allocated(block)
