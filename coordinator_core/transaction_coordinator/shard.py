"""The transaction coordinator of one log partition (`TransactionShard`): requests in, responses, records and markers out.

No call blocks or reads a clock. The owner of a shard serializes its calls, hands `TransactionWrite`s to the log in their order,
reports the result of each (`appended`, `append_failed`, also in order), writes the markers and reports their errors
(`markers_written`), and calls `timers_due` when `next_deadline` has passed. A response is returned only when the log has all
records that it depends on.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, assert_never

from coordinator_core.codec import decode_transaction
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.coordinator_common.results import STATUS_ERRORS, ReplyHandle, ShardStatus
from coordinator_core.log.columns import RecordColumns
from coordinator_core.log.entries import LogRecord
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import Response, TransactionApi, TransactionRequest
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.reduction.transaction_load import load_transaction_columns
from coordinator_core.state.anomaly import Anomaly
from coordinator_core.state.garbage_collection import no_garbage_collection
from coordinator_core.state.transaction_cache import TransactionMetadataCache
from coordinator_core.transaction_coordinator import describe, expiration, markers, timeouts
from coordinator_core.transaction_coordinator.add_partitions import add_offsets_to_txn, add_partitions_to_txn
from coordinator_core.transaction_coordinator.config import TransactionConfig
from coordinator_core.transaction_coordinator.context import TransactionContext, TransactionTopology
from coordinator_core.transaction_coordinator.end_transaction import end_txn
from coordinator_core.transaction_coordinator.init_producer_id import init_producer_id
from coordinator_core.transaction_coordinator.producer_ids import ProducerIdManager
from coordinator_core.transaction_coordinator.request_checks import error_response
from coordinator_core.transaction_coordinator.result import (
    MarkerBatch,
    TransactionResult,
    TransactionResultBuilder,
    TransactionWrite,
)
from coordinator_core.transaction_coordinator.timers import (
    AbortScan,
    CompletionRetry,
    ExpirationSweep,
    MarkerRetry,
    TransactionTimeout,
)

RequestT = TypeVar("RequestT", bound=TransactionRequest)
ResponseT = TypeVar("ResponseT", bound=Response)


def _handler(
    api: TransactionApi[RequestT, ResponseT], handle: Callable[[TransactionResultBuilder, RequestT, ReplyHandle], None]
) -> tuple[type[TransactionRequest], Callable[..., None]]:
    """Return an entry of the table; the signature checks that the handler takes the API's requests."""
    return api.request, handle


#: Handlers of requests that pass `check_request`, by the type of the request.
HANDLERS = dict(
    (
        _handler(apis.INIT_PRODUCER_ID, init_producer_id),
        _handler(apis.ADD_PARTITIONS_TO_TXN, add_partitions_to_txn),
        _handler(apis.ADD_OFFSETS_TO_TXN, add_offsets_to_txn),
        _handler(apis.END_TXN, end_txn),
        _handler(apis.DESCRIBE_TRANSACTIONS, describe.describe_transaction),
        _handler(apis.LIST_TRANSACTIONS, describe.list_transactions),
    )
)


class TransactionShard:
    """Coordinator of one log partition, initially not loaded. `producer_ids` is shared by all shards."""

    def __init__(
        self, partition: int, config: TransactionConfig, producer_ids: ProducerIdManager, topology: TransactionTopology
    ) -> None:
        self.partition = partition
        self.config = config
        self.status = ShardStatus.UNLOADED
        self.epoch = -1
        self._producer_ids = producer_ids
        self._topology = topology
        self._context = self._new_context()
        self._writes: dict[int, TransactionWrite] = {}
        self._write_number = 0

    @property
    def context(self) -> TransactionContext:
        """State of the transactional ids, read-only for callers."""
        return self._context

    # ---- immigration and emigration

    def begin_load(self, epoch: int, now_ms: int) -> bool:  # noqa: ARG002 - as the group coordinator's
        """Start the load of the partition for a leader epoch; return False, without effect, for a stale one.

        Until `finish_load`, the owner passes the log's records to `replay`, and requests get COORDINATOR_LOAD_IN_PROGRESS.
        """
        if epoch <= self.epoch or self.status is not ShardStatus.UNLOADED:
            return False
        self.epoch = epoch
        self.status = ShardStatus.LOADING
        self._context = self._new_context()
        return True

    def replay(self, log_records: Iterable[LogRecord]) -> tuple[Anomaly, ...]:
        """Apply records of the log, in the order of their offsets. Return the anomalies."""
        cache = self._context.cache
        found: list[Anomaly] = []
        for record in log_records:
            applied = cache.apply(record, None if record.is_control else decode_transaction(record.key, record.value))
            if isinstance(applied, Anomaly):
                found.append(applied)
        return tuple(found)

    def replay_columns(self, pieces: Iterable[RecordColumns]) -> tuple[Anomaly, ...]:
        """Apply the whole log as columns, in the order of offsets. Return the anomalies."""
        return load_transaction_columns(self._context.cache, self.partition, pieces)

    def finish_load(self, now_ms: int) -> TransactionResult:
        """End the load: markers of all decided transactions are written again, with this coordinator's epoch."""
        result = self._begin(now_ms)
        self.status = ShardStatus.ACTIVE
        with no_garbage_collection():
            for logged in self._context.cache.transactions.values():
                live = self._context.add(logged.metadata)
                if logged.metadata.state.is_prepared:
                    markers.begin_completion(result, live)
        timeouts.schedule_abort_scan(result)
        expiration.schedule_expiration(result)
        return self._close(result)

    def unload(self, epoch: int | None, now_ms: int) -> TransactionResult:
        """Unload the partition: another coordinator leads it as of this epoch, or the replica was deleted (None).

        An epoch older than the load's is ignored. Requests that wait for the log get NOT_COORDINATOR; no more markers are sent.
        """
        if epoch is not None and epoch < self.epoch:
            return TransactionResult()
        self.epoch = self.epoch if epoch is None else epoch
        result = self._begin(now_ms)
        writes, self._writes = self._writes, {}
        for write in writes.values():
            write.then(ErrorCode.NOT_LEADER_OR_FOLLOWER, result)
        self.status = ShardStatus.UNLOADED
        self._context = self._new_context()
        return TransactionResult(tuple(result.answers))

    # ---- requests, the log, markers, the clock

    def handle(self, request: TransactionRequest, reply: ReplyHandle, now_ms: int) -> TransactionResult:
        """Handle a request. Exactly one response, with its reply handle, is in this result or a later one."""
        result = self._begin(now_ms)
        status = STATUS_ERRORS[self.status]
        if status is ErrorCode.NONE:
            HANDLERS[type(request)](result, request, reply)
        else:
            result.answer(reply, error_response(request, status))
        return self._close(result)

    def error_response(self, request: TransactionRequest, error: ErrorCode) -> Response:
        """Return the response to a request that fails as a whole."""
        return error_response(request, error)

    def appended(self, write: TransactionWrite, base_offset: int, now_ms: int) -> TransactionResult:
        """Apply a write that the log has, starting at this offset, and run its continuation.

        A write from before an unload has no effect: its requests were answered by the unload.
        """
        if self._writes.pop(write.number, None) is None:
            return TransactionResult()
        for offset, (record, (key, value)) in enumerate(zip(write.records, write.encoded, strict=True), base_offset):
            self._context.cache.apply(LogRecord(self.partition, offset, now_ms, key, value, batch_offset=base_offset), record)
        result = self._begin(now_ms)
        write.then(ErrorCode.NONE, result)
        return self._close(result)

    def append_failed(self, write: TransactionWrite, error: ErrorCode, now_ms: int) -> TransactionResult:
        """Run the continuation of a write that the log has refused for good, with its error."""
        if self._writes.pop(write.number, None) is None:
            return TransactionResult()
        result = self._begin(now_ms)
        write.then(error, result)
        return self._close(result)

    def markers_written(self, batch: MarkerBatch, errors: Mapping[TopicPartition, ErrorCode], now_ms: int) -> TransactionResult:
        """Take the errors of a batch of markers. Raises UnexpectedMarkerError for one that brokers treat as a bug."""
        if self.status is not ShardStatus.ACTIVE:
            return TransactionResult()
        result = self._begin(now_ms)
        markers.markers_written(result, batch, errors)
        return self._close(result)

    def timers_due(self, now_ms: int) -> TransactionResult:
        """Run the timers that are due."""
        result = self._begin(now_ms)
        while (due := self._context.timers.pop_due(now_ms)) is not None:
            self._fire(result, due)
        return self._close(result)

    def next_deadline(self) -> int | None:
        """Return the time of the next call of `timers_due`, in ms; None if no timer is set."""
        return self._context.timers.next_deadline()

    def _fire(self, result: TransactionResultBuilder, due: TransactionTimeout) -> None:
        match due:
            case AbortScan():
                timeouts.abort_timed_out_transactions(result)
                timeouts.schedule_abort_scan(result)
            case ExpirationSweep():
                expiration.expire_transactional_ids(result)
                expiration.schedule_expiration(result)
            case MarkerRetry():
                markers.retry_markers(result, due)
            case CompletionRetry():
                markers.retry_completion(result, due)
            case _:
                assert_never(due)

    def _new_context(self) -> TransactionContext:
        cache = TransactionMetadataCache(self.config.era)
        return TransactionContext(self.config, self._producer_ids, self._topology, self.epoch, cache)

    def _begin(self, now_ms: int) -> TransactionResultBuilder:
        return TransactionResultBuilder(self._context, now_ms, self._next_write)

    def _next_write(self) -> int:
        self._write_number += 1
        return self._write_number

    def _close(self, result: TransactionResultBuilder) -> TransactionResult:
        while result.unwritable:
            result.unwritable.pop(0)(ErrorCode.MESSAGE_TOO_LARGE, result)
        self._writes.update((write.number, write) for write in result.writes)
        return result.build()
