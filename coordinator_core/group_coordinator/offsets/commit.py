"""OffsetCommit, TxnOffsetCommit and transaction markers (`OffsetMetadataManager`, `doCommitOffsets`)."""

from collections.abc import Mapping

from coordinator_core.codec import Record
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.group_coordinator import records
from coordinator_core.group_coordinator.classic import rebalance
from coordinator_core.group_coordinator.context import CoordinatorContext
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.states import COMPLETING_REBALANCE, DEAD, EMPTY
from coordinator_core.group_coordinator.result import ResultBuilder
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import UNKNOWN_MEMBER_ID
from coordinator_core.protocol.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetToCommit,
    ProducerEpoch,
    TxnMarkerRequest,
    TxnMarkerResponse,
    TxnOffsetCommitRequest,
)

#: `OffsetCommitRequest.DEFAULT_RETENTION_TIME`, `DEFAULT_TIMESTAMP`.
_NO_RETENTION = -1
_NO_TIMESTAMP = -1
_Request = OffsetCommitRequest | TxnOffsetCommitRequest


def commit_offsets(result: ResultBuilder, request: OffsetCommitRequest, reply: ReplyHandle) -> None:
    """Writes the offsets, and responds when the log has them. A commit without a generation creates a missing group, in eras that
    have groups without members.

    Commits for ZooKeeper (v0) are commits without a generation, in eras whose brokers have ZooKeeper.
    """
    context = result.context
    if request.in_zookeeper and not context.behaviour.has_zookeeper:
        _answer_all(result, reply, request, ErrorCode.UNSUPPORTED_VERSION)
        return
    group = context.find(request.group_id)
    if group is None:
        is_not_found = request.knows_missing_groups and context.behaviour.reports_missing_groups
        refused = ErrorCode.GROUP_ID_NOT_FOUND if is_not_found else ErrorCode.ILLEGAL_GENERATION
        group, error = _missing_group(result, request, refused if request.generation >= 0 else ErrorCode.NONE)
    else:
        error = _validate(context, group, request)
        first = context.behaviour.commit_checks_rebalance_first and error is not ErrorCode.FENCED_INSTANCE_ID
        if group.is_in(COMPLETING_REBALANCE) and (first or error is ErrorCode.NONE):
            error = ErrorCode.REBALANCE_IN_PROGRESS
    if error is not ErrorCode.NONE:
        _answer_all(result, reply, request, error)
        return
    if group is not None and request.member_id in group:
        rebalance.restart_session(result, group, group.member(request.member_id))
    _write(result, request, reply, request.retention_ms, None)


def commit_transactional_offsets(result: ResultBuilder, request: TxnOffsetCommitRequest, reply: ReplyHandle) -> None:
    """Writes pending offsets of a transaction, and responds when the log has them. Rebalances have no effect on them."""
    context = result.context
    group = context.find(request.group_id)
    if group is None:
        refused = request.generation >= 0 and not context.behaviour.transactions_make_groups
        error = ErrorCode.ILLEGAL_GENERATION if refused else ErrorCode.NONE
        group, error = _missing_group(result, request, error)
        if group is not None:
            error = _validate(context, group, request)
    else:
        error = _validate(context, group, request)
    if error is not ErrorCode.NONE:
        _answer_all(result, reply, request, error)
        return
    _write(result, request, reply, _NO_RETENTION, request.producer)


def end_transaction(result: ResultBuilder, request: TxnMarkerRequest, reply: ReplyHandle) -> None:
    """Writes the marker; once the log has it, the producer's pending offsets are committed or dropped."""

    context = result.context

    def written(error: ErrorCode, later: ResultBuilder) -> None:
        later.answer(reply, TxnMarkerResponse(context.behaviour.offset_errors.get(error, error)))

    result.write(
        (),
        written,
        producer=request.producer,
        control_type=request.control_type,
        coordinator_epoch=request.coordinator_epoch,
        transaction_version=request.transaction_version,
    )


def _missing_group(result: ResultBuilder, request: _Request, refused: ErrorCode) -> tuple[ClassicGroup | None, ErrorCode]:
    """Creates the group, unless there is an error, the group has another type, or groups need members (0.9)."""
    context = result.context
    if context.is_foreign(request.group_id):
        return None, ErrorCode.UNKNOWN_MEMBER_ID
    if refused is not ErrorCode.NONE:
        return None, refused
    group = context.create(request.group_id, result.now_ms) if context.config.rules.simple_groups else None
    return group, ErrorCode.NONE


def _validate(context: CoordinatorContext, group: ClassicGroup, request: _Request) -> ErrorCode:
    """Checks a commit (`validateOffsetCommit`). Commits without member fields need an Empty group, transactional ones do not."""
    if group.is_in(DEAD):
        return context.behaviour.dead_group
    if request.generation < 0 and group.is_in(EMPTY):
        return ErrorCode.NONE
    if request.generation >= 0 or request.member_id != UNKNOWN_MEMBER_ID or request.group_instance_id is not None:
        return group.validate_generation(request.member_id, request.group_instance_id, request.generation)
    if isinstance(request, OffsetCommitRequest) and not group.is_in(EMPTY):
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE


def _commit_record(result: ResultBuilder, group_id: str, at: TopicPartition, offset: OffsetToCommit, retention_ms: int) -> Record:
    """Build the record of a commit (`KafkaApis.handleOffsetCommitRequest`, `OffsetAndMetadata.fromRequest`).

    Where every commit expires, the client's timestamp (v1) begins the retention; later it is the time of the commit. A sum above
    the largest number wraps around to a negative one, as in Java: such an offset is expired.
    """
    context, now_ms = result.context, result.now_ms
    timestamp = now_ms if offset.commit_timestamp == _NO_TIMESTAMP else offset.commit_timestamp
    expires_ms = None if retention_ms == _NO_RETENTION else _wrapped(now_ms + retention_ms)
    if context.behaviour.commits_expire:
        retained_ms = context.config.offsets_retention_ms if retention_ms == _NO_RETENTION else retention_ms
        timestamp, expires_ms = now_ms, _wrapped(timestamp + retained_ms)
    return records.offset_commit(context.behaviour, group_id, at, offset, timestamp, expires_ms)


def _wrapped(number: int) -> int:
    """Return the sum of two `long` as Java has it."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _write(
    result: ResultBuilder,
    request: _Request,
    reply: ReplyHandle,
    retention_ms: int,
    producer: ProducerEpoch | None,
) -> None:
    """Writes the offsets as one batch, without those whose metadata is too long."""
    context = result.context
    longest = context.config.offset_metadata_max_bytes
    errors: dict[TopicPartition, ErrorCode] = {}
    commits: list[Record] = []
    for partition, offset in request.offsets.items():
        if _utf16_length(offset.metadata) > longest:
            errors[partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            continue
        errors[partition] = ErrorCode.NONE
        commits.append(_commit_record(result, request.group_id, partition, offset, retention_ms))
    if not commits:
        result.answer(reply, OffsetCommitResponse(errors))
        return
    written_partitions = tuple(partition for partition, error in errors.items() if error is ErrorCode.NONE)
    context.in_flight.begin(request.group_id, written_partitions)

    def written(error: ErrorCode, later: ResultBuilder) -> None:
        context.in_flight.end(request.group_id, written_partitions)
        if error is not ErrorCode.NONE:
            answered = context.behaviour.offset_errors.get(error, error)
            errors.update(dict.fromkeys(written_partitions, answered))
        later.answer(reply, OffsetCommitResponse(errors))

    result.write(tuple(commits), written, producer=producer)


def _answer_all(result: ResultBuilder, reply: ReplyHandle, request: _Request, error: ErrorCode) -> None:
    errors: Mapping[TopicPartition, ErrorCode] = dict.fromkeys(request.offsets, error)
    result.answer(reply, OffsetCommitResponse(errors))


def _utf16_length(text: str | None) -> int:
    return 0 if not text else len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
