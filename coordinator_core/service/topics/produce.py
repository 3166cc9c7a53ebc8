"""Produce: checks of the batches, verification of transactions, appends (`ReplicaManager.handleProduceAppend`)."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.compression import Compression
from coordinator_core.log.record_batch import NO_PRODUCER_ID, BatchHeader
from coordinator_core.producers.append import ProducerRejected
from coordinator_core.producers.leader_checks import start_verification
from coordinator_core.producers.verification import NO_GUARD
from coordinator_core.protocol.cluster import ProducedPartition, ProducePartition, ProduceRequest, ProduceResponse
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.segment_log.data_partition import DataPartition
from coordinator_core.segment_log.errors import SegmentLogError
from coordinator_core.segment_log.topic_config import TopicConfig
from coordinator_core.service.runtime.reply_handles import ReplyHandle
from coordinator_core.service.topics.batch_check import BatchLimits, BatchRefused, ProducedBatch, check_batch, is_transactional
from coordinator_core.service.topics.topic_registry import TopicRegistry

_ACKS = frozenset({-1, 0, 1})
#: Errors of an append that come without the start of the log (`ReplicaManager.appendRecordsToLeader`).
_WITHOUT_START = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE})
#: Error message of Produce v8+, which producers report.
_NO_DATA = "The topic holds no data: it is declared so that consumers can be assigned partitions. Set data = true for records."
#: `add.partitions.to.txn.retry.backoff.ms` and `.max.ms`.
_RETRY_SECONDS = 0.02
_MOST_RETRIES = 5

VerificationErrors = Mapping[TopicPartition, ErrorCode]


class TransactionVerifier(Protocol):
    """The transaction coordinator as leaders of partitions see it (KIP-890)."""

    def verify(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        partitions: Sequence[TopicPartition],
        done: Callable[[VerificationErrors], None],
        *,
        adds: bool,
    ) -> None:
        """Check that the partitions are in the producer's transaction or, with `adds`, add them (transaction version 2).

        `done` is called once, in the event loop, with the coordinator's error of each partition.
        """


@dataclass(slots=True)
class _Batch:
    """A whole batch of the request; `guard` is that of its verification. `content` is checked, or the reason to refuse it."""

    position: int
    at: TopicPartition
    partition: DataPartition
    header: BatchHeader
    content: ProducedBatch | BatchRefused
    guard: int = NO_GUARD

    @property
    def has_transaction(self) -> bool:
        """Whether the batch belongs to a transaction; one that is only marked as transactional, without producer, does not."""
        return self.header.is_transactional and self.header.producer_id != NO_PRODUCER_ID


#: Makes the appended records of partitions durable and visible, then calls back; errors by partition.
Complete = Callable[[Sequence[DataPartition], Callable[[Mapping[DataPartition, ErrorCode]], None]], None]


#: Reports the error of an append.
ReportError = Callable[[DataPartition, SegmentLogError], None]


class Producing:
    """Appends of Produce requests. `complete` ends them; `verifier` is None without a transaction coordinator."""

    def __init__(
        self,
        topics: TopicRegistry,
        now_ms: Callable[[], int],
        complete: Complete,
        report: ReportError,
        *,
        verification_enabled: bool = True,
    ) -> None:
        self._topics = topics
        self._now_ms = now_ms
        self._complete = complete
        self._report = report
        self._verification_enabled = verification_enabled
        self.verifier: TransactionVerifier | None = None

    def produce(self, request: ProduceRequest, reply_handle: ReplyHandle) -> None:
        """Append the batches of a request, each on its own, and answer."""
        if request.transactional_id is None and any(is_transactional(each.records) for each in request.partitions):
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            message = "transactional records need a transactional id"
            reply_handle.answer(ProduceResponse(tuple(_failed(each, error, message) for each in request.partitions)))
            return
        answers: list[ProducedPartition | None] = [None] * len(request.partitions)
        batches = []
        for position, requested in enumerate(request.partitions):
            checked = self._check(request, position, requested)
            if isinstance(checked, _Batch):
                batches.append(checked)
            else:
                answers[position] = checked
        if len({batch.header.producer_id for batch in batches if batch.has_transaction}) > 1:
            message = "the request has transactional records of several producers"
            for batch in batches:
                requested = request.partitions[batch.position]
                answers[batch.position] = _failed(requested, ErrorCode.INVALID_PRODUCER_ID_MAPPING, message)
            batches = []
        _Appends(self, request, batches, answers, reply_handle).verify()

    def _check(self, request: ProduceRequest, position: int, requested: ProducePartition) -> _Batch | ProducedPartition:
        known = self._topics.find(requested.topic or None, requested.topic_id)
        if known is None:
            is_unknown_id = not requested.topic
            error = ErrorCode.UNKNOWN_TOPIC_ID if is_unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return _failed(requested, error)
        if not 0 <= requested.partition < known.partitions:
            return _failed(requested, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if known.data is None:
            if request.acks not in _ACKS:
                return _failed(requested, ErrorCode.INVALID_REQUIRED_ACKS)
            message = "Only the coordinator writes to this topic." if known.is_internal else _NO_DATA
            return _failed(requested, ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        content: ProducedBatch | BatchRefused
        try:
            content = check_batch(requested.records, _limits(known.data.config), self._now_ms())
            header = content.header
        except BatchRefused as refused:
            if refused.header is None:
                return _failed(requested, refused.error, str(refused))
            content, header = refused, refused.header
        if header.compression == Compression.ZSTD and not request.allows_zstd:
            return _failed(requested, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce v7 or later")
        at = TopicPartition(known.name, requested.partition)
        return _Batch(position, at, known.data.partitions[requested.partition], header, content)

    def append(self, batch: _Batch, requested: ProducePartition) -> ProducedPartition:
        """Append one batch; its records are not visible yet."""
        partition, checked = batch.partition, batch.content
        start = partition.log_start_offset
        if isinstance(checked, BatchRefused):
            return _failed(requested, checked.error, str(checked), -1 if checked.error in _WITHOUT_START else start)
        try:
            appended = partition.append(
                checked.header,
                checked.placed,
                checked.max_timestamp,
                batch.guard,
                verification_enabled=self._verification_enabled and self.verifier is not None,
            )
        except ProducerRejected as rejected:
            return _failed(requested, ErrorCode(rejected.error), str(rejected), start)
        except SegmentLogError as error:
            self._report(partition, error)
            return _failed(requested, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        return ProducedPartition(
            requested.topic,
            requested.topic_id,
            requested.partition,
            ErrorCode.NONE,
            None,
            appended.base_offset,
            appended.timestamp,
            start,
        )

    def start_verification(self, batch: _Batch, request: ProduceRequest) -> ErrorCode | None:
        """Set the guard of a batch that needs verification; return an error that precludes it."""
        header = batch.header
        needs = self.verifier is not None and batch.has_transaction
        if not needs or not (self._verification_enabled or request.adds_partitions):
            return None
        states = batch.partition.producers
        try:
            batch.guard = start_verification(
                states,
                header.producer_id,
                header.base_sequence,
                header.producer_epoch,
                self._now_ms(),
                supports_epoch_bump=request.adds_partitions,
            )
        except ProducerRejected as rejected:
            return ErrorCode(rejected.error)
        return None

    def complete(self, partitions: Sequence[DataPartition], done: Callable[[Mapping[DataPartition, ErrorCode]], None]) -> None:
        """Make the appended records durable, as far as configured, and visible."""
        self._complete(partitions, done)


class _Appends:
    """The appends of one request, from the verification to the answer."""

    def __init__(
        self,
        producing: Producing,
        request: ProduceRequest,
        batches: list[_Batch],
        answers: list[ProducedPartition | None],
        reply_handle: ReplyHandle,
    ) -> None:
        self._producing = producing
        self._request = request
        self._batches = batches
        self._answers = answers
        self._reply_handle = reply_handle
        self._retries = 0

    def verify(self) -> None:
        """Ask the transaction coordinator about the batches that need it, then append."""
        for batch in self._batches:
            error = self._producing.start_verification(batch, self._request)
            if error is not None:
                self._fail(batch, error)
        self._batches = [batch for batch in self._batches if self._answers[batch.position] is None]
        self._ask()

    def _ask(self) -> None:
        guarded = [batch for batch in self._batches if batch.guard != NO_GUARD]
        verifier = self._producing.verifier
        if not guarded or verifier is None:
            self._append()
            return
        header = guarded[0].header
        verifier.verify(
            self._request.transactional_id or "",
            ProducerEpoch(header.producer_id, header.producer_epoch),
            [batch.at for batch in guarded],
            self._verified,
            adds=self._request.adds_partitions,
        )

    def _verified(self, errors: VerificationErrors) -> None:
        is_busy = ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
        if is_busy and self._request.adds_partitions and self._retries < _MOST_RETRIES:
            self._retries += 1
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._ask)
            return
        for batch in self._batches:
            error = errors.get(batch.at, ErrorCode.NONE) if batch.guard != NO_GUARD else ErrorCode.NONE
            if error is not ErrorCode.NONE:
                self._fail(batch, _produce_error(error, self._request))
        self._batches = [batch for batch in self._batches if self._answers[batch.position] is None]
        self._append()

    def _append(self) -> None:
        partitions = self._request.partitions
        appended = []
        if self._request.acks not in _ACKS:
            for batch in self._batches:
                self._fail(batch, ErrorCode.INVALID_REQUIRED_ACKS)
            self._batches = []
        for batch in self._batches:
            answer = self._producing.append(batch, partitions[batch.position])
            self._answers[batch.position] = answer
            if answer.error is ErrorCode.NONE:
                appended.append(batch.partition)
        if appended:
            self._producing.complete(appended, self._finish)
        else:
            self._finish({})

    def _finish(self, errors: Mapping[DataPartition, ErrorCode]) -> None:
        for batch in self._batches:
            error = errors.get(batch.partition)
            if error is not None:
                self._fail(batch, error)
        self._reply_handle.answer(ProduceResponse(tuple(answer for answer in self._answers if answer is not None)))

    def _fail(self, batch: _Batch, error: ErrorCode) -> None:
        self._answers[batch.position] = _failed(self._request.partitions[batch.position], error)


@lru_cache(maxsize=1024)
def _limits(config: TopicConfig) -> BatchLimits:
    """Return the limits of a topic with these configs."""
    return BatchLimits(
        config.number("max.message.bytes"),
        config.number("message.timestamp.before.max.ms"),
        config.number("message.timestamp.after.max.ms"),
        config.is_compacted,
        config.number("segment.bytes"),
    )


_RETRIED = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def _produce_error(error: ErrorCode, request: ProduceRequest) -> ErrorCode:
    """Return the producer's error for one of the transaction coordinator."""
    if error in _RETRIED or (error is ErrorCode.CONCURRENT_TRANSACTIONS and not request.adds_partitions):
        # retried without a metadata request
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not request.knows_transaction_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error


def _failed(
    requested: ProducePartition, error: ErrorCode, message: str | None = None, log_start_offset: int = -1
) -> ProducedPartition:
    place = requested.topic, requested.topic_id, requested.partition
    return ProducedPartition(*place, error, message, log_start_offset=log_start_offset)
