"""A transaction coordinator with a log and a clock, driven by a test: no socket, no thread, no sleeping.

Writes pass as bytes into a log, immediately or when the test releases them. Markers wait in `sent` until they are acknowledged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from coordinator_harness import Call

from coordinator_core.codec import TransactionRecord, decode_transaction, encode_transaction
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.coordinator_common.results import ShardStatus
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.partitioner import partition_for
from coordinator_core.protocol.api import TransactionRequest
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import (
    NO_PRODUCER,
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
)
from coordinator_core.state.transaction_cache import TransactionMetadataCache
from coordinator_core.state.transaction_metadata import TransactionMetadata, transaction_record
from coordinator_core.state.transaction_state import TransactionState
from coordinator_core.transaction_coordinator.config import TransactionConfig
from coordinator_core.transaction_coordinator.context import TransactionTopology
from coordinator_core.transaction_coordinator.events import TransactionEvent
from coordinator_core.transaction_coordinator.live_transaction import LiveTransaction
from coordinator_core.transaction_coordinator.producer_ids import ProducerIdManager, ProducerIdsBlock, next_block
from coordinator_core.transaction_coordinator.result import MarkerBatch, TransactionResult, TransactionWrite
from coordinator_core.transaction_coordinator.shard import TransactionShard
from coordinator_core.transaction_coordinator.transaction_coordinator import TransactionCoordinator

ID = "transactional-id"
START_MS = 1_700_000_000_000
TIMEOUT_MS = 60_000
#: First producer id of states that a test puts into the log; ids from blocks are below.
PRODUCER_ID = 5_000_000
T0, T1 = TopicPartition("topic1", 0), TopicPartition("topic1", 1)
PARTITIONS = frozenset({T0, T1})
OFFSETS = TopicPartition("__consumer_offsets", 12)


class TransactionHarness:
    """The coordinator of one log partition, the one that has ID.

    `hold` delays writes until `release`; `append_error` is the error that the log returns instead of taking a write.
    `missing` has partitions that do not exist. `known` are ids that the log has.
    """

    def __init__(self, *known: TransactionMetadata, era: str = "4", **changes: Any) -> None:
        self.era = era
        self.config = TransactionConfig(era=era, **changes)
        self.now_ms = START_MS
        self.hold = False
        self.append_error: ErrorCode | None = None
        self.missing: set[TopicPartition] = set()
        self.partition = partition_for(ID, self.config.transaction_state_log_num_partitions)
        self.log: list[LogRecord] = []
        self.held: list[TransactionWrite] = []
        self.written: list[TransactionMetadata | None] = []
        self.batches: list[tuple[TransactionRecord, ...]] = []
        self.sent: list[MarkerBatch] = []
        self.events: list[TransactionEvent] = []
        self.calls: list[Call] = []
        self.epoch = 0
        self.block: ProducerIdsBlock | None = None
        self.blocks_fail = False
        self.producer_ids = ProducerIdManager(self._allocate, lambda: self.now_ms)
        self.topology = TransactionTopology(lambda partition: partition not in self.missing, lambda _group: OFFSETS)
        self.coordinator = TransactionCoordinator(self.config, {}, self.producer_ids, self.topology)
        self.lead()
        for each in known:
            self.put(each)

    def _allocate(self) -> None:
        if self.blocks_fail:
            self.producer_ids.allocation_failed()
            return
        self.block = next_block(self.block)
        self.producer_ids.allocated(self.block)

    # ---- the log partition

    @property
    def shard(self) -> TransactionShard:
        return self.coordinator.shards[self.partition]

    def begin_load(self) -> TransactionShard:
        """A new shard that is loading."""
        shard = TransactionShard(self.partition, self.config, self.producer_ids, self.topology)
        self.epoch += 1
        assert shard.begin_load(self.epoch, self.now_ms)
        self.coordinator.shards[self.partition] = shard
        return shard

    def lead(self) -> TransactionShard:
        """Load the log partition from its log."""
        shard = self.begin_load()
        assert shard.replay(self.log) == ()
        self._take(shard.finish_load(self.now_ms))
        return shard

    def crash(self) -> None:
        """Stop the process and load the log into another: what was not answered, written or acknowledged is lost."""
        self.held.clear()
        self.sent.clear()
        self.calls.clear()
        self.lead()

    def release(self) -> None:
        """Let the log take, or reject, the writes that were held."""
        self.hold = False
        held, self.held = self.held, []
        for write in held:
            self._append(write)

    def advance(self, ms: int) -> None:
        """Advance the clock by this many ms and run the timers that expire."""
        self.now_ms += ms
        self._take(self.shard.timers_due(self.now_ms))

    def loaded(self) -> Mapping[str, TransactionMetadata]:
        """The state that the log loads to."""
        cache = TransactionMetadataCache(self.era)
        for record in self.log:
            cache.apply(record, decode_transaction(record.key, record.value))
        return cache.metadata()

    def put(self, metadata: TransactionMetadata, *, pending: TransactionState | None = None) -> LiveTransaction:
        """An id in this state, with the fields that only memory has."""
        key, value = encode_transaction(record := transaction_record(metadata, self.config.behaviour.value_version))
        log_record = LogRecord(self.partition, len(self.log), self.now_ms, key, value)
        self.log.append(log_record)
        self.shard.context.cache.apply(log_record, record)
        live = self.shard.context.add(metadata)
        live.pending = pending
        return live

    def live(self, transactional_id: str = ID) -> LiveTransaction:
        return self.shard.context.live[transactional_id]

    def now(self, transactional_id: str = ID) -> TransactionMetadata:
        """The current state of the id."""
        return self.live(transactional_id).metadata

    def producer(self, epoch: int | None = None, transactional_id: str = ID) -> ProducerEpoch:
        """The current producer of the id, or the same producer id with another epoch."""
        now = self.now(transactional_id)
        return ProducerEpoch(now.producer_id, now.producer_epoch if epoch is None else epoch)

    # ---- markers

    def acknowledge(self, error: ErrorCode = ErrorCode.NONE, only: Iterable[TopicPartition] | None = None) -> None:
        """Report this error for all markers that were sent, or for some partitions of them."""
        sent, self.sent = self.sent, []
        for batch in sent:
            answered = batch.partitions if only is None else batch.partitions & frozenset(only)
            if rest := batch.partitions - answered:
                self.sent.append(replace(batch, partitions=rest))
            if answered:
                self.report(batch, dict.fromkeys(answered, error))

    def report(self, batch: MarkerBatch, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        self._take(self.shard.markers_written(batch, errors, self.now_ms))

    # ---- requests

    def send(self, request: TransactionRequest) -> Call:
        """Send a request to the shard of its id."""
        call = Call(request)
        self.calls.append(call)
        to = self.shard if isinstance(request, ListTransactionsRequest) else self.coordinator.route(request)
        if isinstance(to, TransactionShard):
            self._take(to.handle(request, call, self.now_ms))
        else:
            call.answers.append(to)
        return call

    def init(
        self,
        transactional_id: str | None = ID,
        expected: ProducerEpoch = NO_PRODUCER,
        *,
        timeout_ms: int = TIMEOUT_MS,
        **more: Any,
    ) -> Call:
        return self.send(InitProducerIdRequest(transactional_id, timeout_ms, expected, **more))

    def add(
        self,
        producer: ProducerEpoch,
        partitions: Iterable[TopicPartition] = PARTITIONS,
        transactional_id: str | None = ID,
        **more: Any,
    ) -> Call:
        return self.send(AddPartitionsToTxnRequest(transactional_id, producer, tuple(sorted(partitions)), **more))

    def add_error(self, *arguments: Any, **more: Any) -> ErrorCode:
        """The only error of AddPartitionsToTxn."""
        (error,) = set(self.add(*arguments, **more).response.errors.values())
        assert isinstance(error, ErrorCode)
        return error

    def verify(
        self, producer: ProducerEpoch, partitions: Iterable[TopicPartition] = PARTITIONS
    ) -> Mapping[TopicPartition, ErrorCode]:
        """The errors of a broker's verification."""
        response = self.add(producer, partitions, verify_only=True, from_broker=True).response
        errors: Mapping[TopicPartition, ErrorCode] = response.errors
        return errors

    def add_offsets(self, producer: ProducerEpoch, group: str = "group") -> Call:
        return self.send(AddOffsetsToTxnRequest(ID, producer, group))

    def end(self, producer: ProducerEpoch, *, commit: bool, version: int = 2, transactional_id: str | None = ID) -> Call:
        return self.send(EndTxnRequest(transactional_id, producer, commit, increments_epoch=version == 2))

    def describe(self, transactional_id: str = ID) -> Any:
        return self.send(DescribeTransactionRequest(transactional_id)).response

    def list(self, **filters: Any) -> Any:
        return self.send(ListTransactionsRequest(**filters)).response

    # ---- results

    def _take(self, result: TransactionResult) -> None:
        for answer in result.answers:
            assert isinstance(answer.reply, Call)
            answer.reply.answers.append(answer.response)
            assert len(answer.reply.answers) == 1, f"answered twice: {answer.reply.request}"
        self.sent += result.markers
        self.events += result.events
        for write in result.writes:
            self.batches.append(write.records)
            if self.hold:
                self.held.append(write)
            else:
                self._append(write)

    def _append(self, write: TransactionWrite) -> None:
        shard = self.shard
        if self.append_error is not None:
            self._take(shard.append_failed(write, self.append_error, self.now_ms))
            return
        base = len(self.log)
        self.log += (
            LogRecord(self.partition, offset, self.now_ms, key, value) for offset, (key, value) in enumerate(write.encoded, base)
        )
        result = shard.appended(write, base, self.now_ms)
        for record in write.records:
            logged = shard.context.cache.transactions.get(record.key.transactional_id)
            self.written.append(None if logged is None else logged.metadata)
        self._take(result)

    @property
    def is_active(self) -> bool:
        return self.shard.status is ShardStatus.ACTIVE


def metadata(state: TransactionState, epoch: int = 10, **changes: Any) -> TransactionMetadata:
    """A state of ID, as the log has it."""
    is_open = state not in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
    made = TransactionMetadata(
        transactional_id=ID,
        producer_id=PRODUCER_ID,
        producer_epoch=epoch,
        timeout_ms=TIMEOUT_MS,
        state=state,
        partitions=PARTITIONS if is_open else frozenset(),
        start_ms=-1 if state is TransactionState.EMPTY else START_MS,
        last_update_ms=START_MS,
    )
    return made._replace(**changes)
