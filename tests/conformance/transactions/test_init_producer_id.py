"""Kafka's TransactionCoordinatorTest: InitProducerId. Era 4 has transaction version 2, the others have 0."""

from typing import Any

import pytest
from transaction_harness import ID, PRODUCER_ID, START_MS, TransactionHarness, metadata

from coordinator_core.coordinator_common.results import ShardStatus
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import NO_PRODUCER, InitProducerIdResponse
from coordinator_core.state.transaction_metadata import MAX_EPOCH
from coordinator_core.state.transaction_state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionState,
)

NONE = ErrorCode.NONE
LAST_EPOCH = MAX_EPOCH - 1


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="shouldReturnInvalidRequestWhenTransactionalIdIsEmpty"),
        pytest.param({"keep_prepared": True}, id="shouldReturnInvalidRequestWhenKeepPreparedIsTrue"),
        pytest.param({"enable_two_phase_commit": True}, id="shouldReturnInvalidRequestWhen2PCEnabledButBroker2PCConfigFalse"),
    ],
)
def test_an_empty_id_is_invalid(fields: dict[str, Any]) -> None:
    assert TransactionHarness().init("", **fields).response == InitProducerIdResponse(ErrorCode.INVALID_REQUEST, NO_PRODUCER)


def test_two_phase_commit() -> None:
    """Beside: the answers that the two cases about two-phase commit do not reach, and the timeout of an enabled one."""
    at = TransactionHarness()
    assert at.init(enable_two_phase_commit=True).error is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert at.init(keep_prepared=True).error is ErrorCode.UNSUPPORTED_VERSION
    enabled = TransactionHarness(transaction_two_phase_commit_enable=True)
    assert enabled.init(enable_two_phase_commit=True, timeout_ms=-5).error is NONE
    assert enabled.now().is_two_phase


def test_ids_of_idempotent_producers() -> None:
    """shouldAcceptInitPidAndReturnNextPidWhenTransactionalIdIsNull"""
    at = TransactionHarness()
    assert [at.init(None).response.producer for _ in range(2)] == [ProducerEpoch(0, 0), ProducerEpoch(1, 0)]
    assert at.log == []


def test_a_new_id() -> None:
    """shouldInitPidWithEpochZeroForNewTransactionalId"""
    at = TransactionHarness()
    assert at.init().response == InitProducerIdResponse(NONE, ProducerEpoch(0, 0))
    assert at.loaded()[ID].state is EMPTY


def test_a_new_id_with_a_producer() -> None:
    """shouldGenerateNewProducerIdIfNoStateAndProducerIdAndEpochProvided"""
    assert TransactionHarness().init(expected=ProducerEpoch(77, 12)).response.producer == ProducerEpoch(0, 0)


def test_epochs_are_exhausted() -> None:
    """shouldGenerateNewProducerIdIfEpochsExhausted"""
    at = TransactionHarness(metadata(EMPTY, LAST_EPOCH))
    assert at.init().response.producer == ProducerEpoch(0, 0)


def test_epochs_are_exhausted_by_a_commit() -> None:
    """shouldGenerateNewProducerIdIfEpochsExhaustedV2"""
    at = TransactionHarness(metadata(ONGOING, LAST_EPOCH))
    assert at.end(at.producer(), commit=True).response.producer == ProducerEpoch(0, 0)
    now = at.now()
    assert (now.state, now.producer_id, now.producer_epoch, now.next_producer_id) == (PREPARE_COMMIT, PRODUCER_ID, MAX_EPOCH, 0)
    assert {batch.marker.producer for batch in at.sent} == {ProducerEpoch(PRODUCER_ID, MAX_EPOCH)}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        pytest.param(
            ShardStatus.UNLOADED, ErrorCode.NOT_COORDINATOR, id="shouldRespondWithNotCoordinatorOnInitPidWhenNotCoordinator"
        ),
        pytest.param(
            ShardStatus.LOADING,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            id="shouldRespondWithCoordinatorLoadInProgressOnInitPidWhenCoordinatorLoading",
        ),
    ],
)
def test_the_partition_is_not_served(status: ShardStatus, error: ErrorCode) -> None:
    at = TransactionHarness()
    at.shard.status = status
    assert at.init().response == InitProducerIdResponse(error)


@pytest.mark.parametrize("era", ["1", "2", "3", "4"])
@pytest.mark.parametrize(
    "state",
    [
        pytest.param(EMPTY, id="shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingEmptyTransaction"),
        pytest.param(COMPLETE_ABORT, id="shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingCompleteTransaction"),
        pytest.param(
            COMPLETE_COMMIT, id="shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingCompleteCommitTransaction"
        ),
    ],
)
def test_the_epoch_is_incremented(state: TransactionState, era: str) -> None:
    at = TransactionHarness(metadata(state), era=era)
    assert at.init(timeout_ms=30_000).response == InitProducerIdResponse(NONE, ProducerEpoch(PRODUCER_ID, 11))
    logged = at.loaded()[ID]
    assert (logged.state, logged.producer_epoch, logged.timeout_ms, logged.start_ms) == (EMPTY, 11, 30_000, -1)
    assert logged.partitions == frozenset()


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(PREPARE_COMMIT, id="shouldWaitForCommitToCompleteOnHandleInitPidAndExistingTransactionInPrepareCommitState"),
        pytest.param(PREPARE_ABORT, id="shouldWaitForCommitToCompleteOnHandleInitPidAndExistingTransactionInPrepareAbortState"),
    ],
)
def test_a_decided_transaction_is_awaited(state: TransactionState) -> None:
    at = TransactionHarness(metadata(state))
    assert at.init().response == InitProducerIdResponse(ErrorCode.CONCURRENT_TRANSACTIONS)


@pytest.mark.parametrize("era", ["1", "2", "3", "4"])
def test_an_open_transaction_is_aborted(era: str) -> None:
    """shouldAbortTransactionOnHandleInitPidWhenExistingTransactionInOngoingState"""
    at = TransactionHarness(metadata(ONGOING), era=era)
    assert at.init().response == InitProducerIdResponse(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert (at.now().state, at.now().producer_epoch) == (PREPARE_ABORT, 11)
    at.acknowledge()
    assert at.now().state is COMPLETE_ABORT
    assert at.init().response.producer == ProducerEpoch(PRODUCER_ID, 12)


def test_a_refused_fence_uses_one_epoch() -> None:
    """shouldNotRepeatedlyBumpEpochDueToInitPidDuringOngoingTxnIfAppendToLogFails"""
    at = TransactionHarness(metadata(ONGOING), era="3")
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    for _ in range(2):
        assert at.init().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (at.now().producer_epoch, at.live().has_failed_fence, at.live().pending) == (11, True, None)
    at.append_error = None
    assert at.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert (at.now().producer_epoch, at.live().has_failed_fence) == (11, False)


def test_a_refused_fence_uses_an_epoch_each_before_2_6() -> None:
    """Beside: KAFKA-9666."""
    at = TransactionHarness(metadata(ONGOING), era="2")
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    for epoch in (11, 12):
        assert at.init().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert at.now().producer_epoch == epoch


def test_a_refused_fence_with_version_2_leaves_the_epoch() -> None:
    """testTV2AllowsEpochReBumpingAfterFailedWrite"""
    at = TransactionHarness(metadata(ONGOING, 1))
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert at.init().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (at.now().producer_epoch, at.live().pending, at.live().has_failed_fence) == (1, None, False)
    at.append_error = None
    assert at.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    at.acknowledge()
    assert at.init().response.producer == ProducerEpoch(PRODUCER_ID, 3)


@pytest.mark.parametrize(
    "era",
    [
        pytest.param("3", id="shouldUseLastEpochToFenceWhenEpochsAreExhausted"),
        pytest.param("4", id="shouldNotCauseEpochOverflowWhenInitPidDuringOngoingTxnV2"),
    ],
)
def test_the_last_epoch_fences(era: str) -> None:
    at = TransactionHarness(metadata(ONGOING, LAST_EPOCH), era=era)
    assert at.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert (at.now().state, at.now().producer_epoch) == (PREPARE_ABORT, MAX_EPOCH)
    at.acknowledge()
    assert at.init().error is NONE
    assert at.now().producer_id != PRODUCER_ID


def test_a_fence_at_the_last_epoch_changes_the_producer_id() -> None:
    """shouldRotateProducerIdWhenInitPidFencesOngoingTxnAtEpochOverflowBoundaryTV2"""
    at = TransactionHarness(metadata(ONGOING, LAST_EPOCH))
    at.init()
    now = at.now()
    assert (now.producer_id, now.producer_epoch, now.next_producer_id) == (PRODUCER_ID, MAX_EPOCH, 0)
    at.acknowledge()
    now = at.now()
    assert (now.state, now.producer_id, now.producer_epoch) == (COMPLETE_ABORT, 0, 0)
    late = at.end(ProducerEpoch(PRODUCER_ID, LAST_EPOCH), commit=False).response
    assert (late.error, late.producer) == (NONE, ProducerEpoch(0, 0))


def test_an_older_epoch_is_fenced() -> None:
    """testInitProducerIdWithNoLastProducerData"""
    at = TransactionHarness(metadata(EMPTY, 10))
    assert at.init(expected=at.producer(9)).error is ErrorCode.PRODUCER_FENCED


def test_another_producer_id_is_fenced() -> None:
    """testFenceProducerWhenMappingExistsWithDifferentProducerId"""
    at = TransactionHarness(metadata(EMPTY))
    assert at.init(expected=ProducerEpoch(PRODUCER_ID + 1, 10)).error is ErrorCode.PRODUCER_FENCED


def test_the_current_epoch() -> None:
    """testInitProducerIdWithCurrentEpochProvided"""
    at = TransactionHarness(metadata(EMPTY, 10))
    for _ in range(2):
        assert at.init(expected=at.producer(10)).response.producer == ProducerEpoch(PRODUCER_ID, 11)


def test_a_stale_epoch() -> None:
    """testInitProducerIdStaleCurrentEpochProvided"""
    at = TransactionHarness(metadata(EMPTY, 10))
    assert at.init().response.producer == ProducerEpoch(PRODUCER_ID, 11)
    assert at.init(expected=at.producer(10)).error is ErrorCode.PRODUCER_FENCED


def test_a_retry_after_the_producer_id_has_changed() -> None:
    """testRetryInitProducerIdAfterProducerIdRotation"""
    at = TransactionHarness(metadata(EMPTY, LAST_EPOCH))
    for _ in range(2):
        assert at.init(expected=ProducerEpoch(PRODUCER_ID, LAST_EPOCH)).response.producer == ProducerEpoch(0, 0)


def test_an_older_epoch_after_the_producer_id_has_changed() -> None:
    """testInitProducerIdWithInvalidEpochAfterProducerIdRotation"""
    at = TransactionHarness(metadata(EMPTY, LAST_EPOCH))
    assert at.init(expected=ProducerEpoch(PRODUCER_ID, LAST_EPOCH)).error is NONE
    assert at.init(expected=ProducerEpoch(PRODUCER_ID, LAST_EPOCH - 1)).error is ErrorCode.PRODUCER_FENCED


def test_another_epoch_of_an_exhausted_producer_id() -> None:
    """Beside: the broker throws, and the client gets UNKNOWN_SERVER_ERROR."""
    at = TransactionHarness(metadata(EMPTY, LAST_EPOCH))
    assert at.init(expected=ProducerEpoch(PRODUCER_ID, 3)).error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_transition_in_progress() -> None:
    """shouldNotBumpEpochWithPendingTransaction"""
    at = TransactionHarness()
    at.put(metadata(ONGOING), pending=PREPARE_COMMIT)
    assert at.init(expected=at.producer()).error is ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("fields", [(5, -1), (-1, 5)])
def test_half_of_a_producer(fields: tuple[int, int]) -> None:
    """Beside: KafkaApis."""
    assert TransactionHarness().init(expected=ProducerEpoch(*fields)).error is ErrorCode.INVALID_REQUEST


def test_old_clients_get_the_old_error() -> None:
    """Beside: shouldReplaceProducerFencedWithInvalidProducerEpoch of KafkaApisTest."""
    at = TransactionHarness(metadata(EMPTY))
    call = at.init(expected=at.producer(3), knows_producer_fenced=False)
    assert call.error is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("timeout_ms", [-1, 0, 900_001])
def test_invalid_timeouts(timeout_ms: int) -> None:
    """Beside: checked before the partition is looked up."""
    at = TransactionHarness()
    at.shard.status = ShardStatus.LOADING
    assert at.init(timeout_ms=timeout_ms).error is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_no_producer_ids_are_there() -> None:
    """Beside: the block is being allocated."""
    at = TransactionHarness()
    at.blocks_fail = True
    assert at.init().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert at.init(None).error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    at.blocks_fail = False
    at.advance(50)
    assert at.init().error is NONE
    assert at.now().last_update_ms == START_MS + 50
