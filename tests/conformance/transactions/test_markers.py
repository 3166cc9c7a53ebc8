"""Kafka's TransactionMarkerChannelManagerTest and TransactionMarkerRequestCompletionHandlerTest: markers and completions."""

from dataclasses import replace
from typing import Any

import pytest
from transaction_harness import ID, OFFSETS, PARTITIONS, T0, T1, TransactionHarness, metadata

from coordinator_core.coordinator_common.results import ShardStatus
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.state.transaction_state import COMPLETE_COMMIT, ONGOING, PREPARE_COMMIT
from coordinator_core.transaction_coordinator.events import MarkersAbandoned
from coordinator_core.transaction_coordinator.markers import RETRY_MS, UnexpectedMarkerError
from coordinator_core.transaction_coordinator.transition_checks import IllegalTxnTransition

NONE = ErrorCode.NONE


def decided(**changes: Any) -> TransactionHarness:
    """A transaction whose commit is in the log, and whose markers are sent."""
    at = TransactionHarness(metadata(ONGOING, **changes))
    assert at.end(at.producer(), commit=True).error is NONE
    return at


def test_one_completion() -> None:
    """shouldOnlyWriteTxnCompletionOnce"""
    at = decided()
    at.hold = True
    (batch,) = at.sent
    at.report(batch, {T0: NONE})
    assert at.held == []
    at.report(batch, {T1: NONE})
    at.report(batch, {T0: NONE, T1: NONE})
    assert len(at.held) == 1
    at.release()
    assert at.now().state is COMPLETE_COMMIT
    at.report(batch, {T0: NONE, T1: NONE})
    assert len(at.log) == 3


def test_the_completion_after_a_load() -> None:
    """shouldNotLoseTxnCompletionAfterLoad"""
    at = decided()
    (old,) = at.sent
    at.crash()
    (new,) = at.sent
    assert new.marker.coordinator_epoch == old.marker.coordinator_epoch + 1
    at.report(old, {T0: NONE, T1: NONE})
    assert at.now().state is PREPARE_COMMIT
    at.acknowledge()
    assert at.now().state is COMPLETE_COMMIT


def test_nothing_to_send() -> None:
    """shouldGenerateEmptyMapWhenNoRequestsOutstanding"""
    assert TransactionHarness().sent == []


@pytest.mark.parametrize("version", [0, 2])
def test_a_batch_per_transaction(version: int) -> None:
    """shouldGenerateRequestPerPartitionPerBroker

    The owner of the shard knows the brokers of the partitions.
    """
    at = TransactionHarness(transaction_state_log_num_partitions=1)
    for number in (1, 2):
        name = f"t{number}"
        at.put(metadata(ONGOING, transactional_id=name, producer_id=number))
        at.end(at.producer(transactional_id=name), commit=True, version=version, transactional_id=name)
    assert [(batch.transactional_id, batch.partitions) for batch in at.sent] == [("t1", PARTITIONS), ("t2", PARTITIONS)]
    epoch = 11 if version == 2 else 10
    assert [batch.marker.producer for batch in at.sent] == [ProducerEpoch(1, epoch), ProducerEpoch(2, epoch)]
    assert {batch.marker.transaction_version for batch in at.sent} == {version}


def test_partitions_that_were_deleted() -> None:
    """shouldSkipSendMarkersWhenLeaderNotFound"""
    at = TransactionHarness(metadata(ONGOING))
    at.missing.add(T0)
    at.end(at.producer(), commit=True)
    assert [batch.partitions for batch in at.sent] == [{T1}]
    at.acknowledge()
    assert at.now().state is COMPLETE_COMMIT


def test_all_partitions_were_deleted() -> None:
    """Beside: the transaction is completed without a wait."""
    at = TransactionHarness(metadata(ONGOING))
    at.missing |= PARTITIONS
    assert at.end(at.producer(), commit=True).error is NONE
    assert (at.sent, at.now().state) == ([], COMPLETE_COMMIT)


def test_a_partition_is_deleted_before_a_retry() -> None:
    """Beside: as after a change of metadata."""
    at = decided()
    at.acknowledge(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [T0])
    at.acknowledge(NONE)
    at.missing.add(T0)
    at.advance(RETRY_MS)
    assert (at.sent, at.now().state) == ([], COMPLETE_COMMIT)


def test_markers_of_an_emigrated_partition() -> None:
    """shouldRemoveMarkersForTxnPartitionWhenPartitionEmigrated"""
    at = decided()
    at.acknowledge(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    at.shard.unload(at.epoch + 1, at.now_ms)
    at.advance(10 * RETRY_MS)
    assert at.sent == []


def test_a_completion() -> None:
    """shouldCompleteAppendToLogOnEndTxnWhenSendMarkersSucceed"""
    at = decided()
    at.acknowledge()
    assert (at.now().state, at.live().pending, at.loaded()[ID].partitions) == (COMPLETE_COMMIT, None, frozenset())


def test_a_completion_by_another_coordinator() -> None:
    """shouldAbortAppendToLogOnEndTxnWhenNotCoordinatorError"""
    at = decided()
    at.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    at.acknowledge()
    at.append_error = None
    at.advance(10 * RETRY_MS)
    assert (at.now().state, at.live().pending) == (PREPARE_COMMIT, None)


def test_a_completion_that_the_log_refuses_for_now() -> None:
    """shouldRetryAppendToLogOnEndTxnWhenCoordinatorNotAvailableError"""
    at = decided()
    at.append_error = ErrorCode.REQUEST_TIMED_OUT
    at.acknowledge()
    at.append_error = None
    at.advance(RETRY_MS)
    assert (at.now().state, at.live().pending) == (COMPLETE_COMMIT, None)


# ---- TransactionMarkerRequestCompletionHandlerTest


def test_no_errors() -> None:
    """shouldCompleteDelayedOperationWhenNoErrors"""
    at = decided(partitions=frozenset({T0}))
    at.acknowledge()
    assert at.now().state is COMPLETE_COMMIT


def test_an_unknown_producer() -> None:
    """shouldThrowIllegalStateExceptionIfErrorCodeNotAvailableForPid

    A report without the id of the transaction.
    """
    at = decided()
    with pytest.raises(IllegalTxnTransition):
        at.report(replace(at.sent[0], transactional_id="other"), {T0: NONE})


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(ShardStatus.UNLOADED, id="shouldCompleteDelayedOperationWhenNotCoordinator"),
        pytest.param(ShardStatus.LOADING, id="shouldCompleteDelayedOperationWhenCoordinatorLoading"),
    ],
)
def test_reports_after_the_partition_has_moved(status: ShardStatus) -> None:
    at = decided()
    at.shard.status = status
    at.acknowledge()
    assert (at.now().state, len(at.log)) == (PREPARE_COMMIT, 2)


def test_reports_of_another_coordinator_epoch() -> None:
    """shouldCompleteDelayedOperationWhenCoordinatorEpochChanged"""
    at = decided()
    (batch,) = at.sent
    marker = replace(batch.marker, coordinator_epoch=batch.marker.coordinator_epoch - 1)
    at.report(replace(batch, marker=marker), {T0: NONE, T1: NONE})
    assert at.now().state is PREPARE_COMMIT


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ErrorCode.INVALID_PRODUCER_EPOCH, id="shouldCompleteDelayedOperationWhenInvalidProducerEpoch"),
        pytest.param(ErrorCode.TRANSACTION_COORDINATOR_FENCED, id="shouldCompleteDelayedOperationWhenCoordinatorEpochFenced"),
    ],
)
def test_markers_that_are_given_up(error: ErrorCode) -> None:
    at = decided()
    at.acknowledge(error, [T0])
    at.acknowledge()
    at.advance(10 * RETRY_MS)
    assert (at.now().state, at.live().pending, at.sent) == (PREPARE_COMMIT, COMPLETE_COMMIT, [])
    assert at.events == [MarkersAbandoned(ID, T0.topic, T0.partition, error.name)]
    assert at.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    at.crash()
    at.acknowledge()
    assert at.now().state is COMPLETE_COMMIT


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ErrorCode.UNKNOWN_SERVER_ERROR, id="shouldThrowIllegalStateExceptionWhenUnknownError"),
        pytest.param(ErrorCode.CORRUPT_MESSAGE, id="shouldThrowIllegalStateExceptionWhenCorruptMessageError"),
        pytest.param(ErrorCode.MESSAGE_TOO_LARGE, id="shouldThrowIllegalStateExceptionWhenMessageTooLargeError"),
        pytest.param(ErrorCode.RECORD_LIST_TOO_LARGE, id="shouldThrowIllegalStateExceptionWhenRecordListTooLargeError"),
        pytest.param(ErrorCode.INVALID_REQUIRED_ACKS, id="shouldThrowIllegalStateExceptionWhenInvalidRequiredAcksError"),
    ],
)
def test_errors_that_markers_must_not_have(error: ErrorCode) -> None:
    at = decided()
    with pytest.raises(UnexpectedMarkerError, match=error.name):
        at.acknowledge(error)
    assert at.now().state is PREPARE_COMMIT


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="shouldRetryPartitionWhenUnknownTopicOrPartitionError"),
        pytest.param(ErrorCode.NOT_LEADER_OR_FOLLOWER, id="shouldRetryPartitionWhenNotLeaderOrFollowerError"),
        pytest.param(ErrorCode.NOT_ENOUGH_REPLICAS, id="shouldRetryPartitionWhenNotEnoughReplicasError"),
        pytest.param(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, id="shouldRetryPartitionWhenNotEnoughReplicasAfterAppendError"),
        pytest.param(ErrorCode.KAFKA_STORAGE_ERROR, id="shouldRetryPartitionWhenKafkaStorageError"),
        pytest.param(ErrorCode.REQUEST_TIMED_OUT, id="timed out"),
    ],
)
def test_markers_are_written_again(error: ErrorCode) -> None:
    at = decided(partitions=frozenset({T0, T1, OFFSETS}))
    at.acknowledge(error, [T0, OFFSETS])
    at.acknowledge()
    assert at.sent == []
    at.advance(RETRY_MS)
    assert [batch.partitions for batch in at.sent] == [{T0, OFFSETS}]
    at.acknowledge()
    assert at.now().state is COMPLETE_COMMIT


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, id="shouldRemoveTopicPartitionFromWaitingSetOnUnsupportedForMessageFormat"
        ),
        pytest.param(ErrorCode.UNSUPPORTED_VERSION, id="version"),
    ],
)
def test_partitions_without_transactions(error: ErrorCode) -> None:
    at = decided()
    at.acknowledge(error)
    assert at.now().state is COMPLETE_COMMIT
