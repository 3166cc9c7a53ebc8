"""Kafka's TransactionCoordinatorTest: EndTxn, timeouts, emigration and descriptions."""

from typing import Any

import pytest
from transaction_harness import (
    ID,
    PARTITIONS,
    PRODUCER_ID,
    START_MS,
    TIMEOUT_MS,
    TransactionHarness,
    metadata,
)

from coordinator_core.coordinator_common.results import ShardStatus
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import NO_PRODUCER, DescribeTransactionResponse
from coordinator_core.state.transaction_metadata import MAX_EPOCH
from coordinator_core.state.transaction_state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARE_EPOCH_FENCE,
    TransactionState,
)

NONE, FENCED, BUSY = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED, ErrorCode.CONCURRENT_TRANSACTIONS
INVALID, UNKNOWN = ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING
COMMIT, ABORT = True, False
ACTIVE, BAD_REQUEST = ShardStatus.ACTIVE, ErrorCode.INVALID_REQUEST
SCAN_MS = 10_000
LAST_EPOCH = MAX_EPOCH - 1
versions = pytest.mark.parametrize("version", [0, 2])


@versions
def test_an_unknown_id(version: int) -> None:
    """shouldReplyWithInvalidPidMappingOnEndTxnWhenTxnIdDoesntExist"""
    assert TransactionHarness().end(ProducerEpoch(1, 1), commit=True, version=version).error is UNKNOWN


@versions
def test_another_producer_id(version: int) -> None:
    """shouldReplyWithInvalidPidMappingOnEndTxnWhenPidDoesntMatchMapped"""
    at = TransactionHarness(metadata(ONGOING))
    assert at.end(ProducerEpoch(1, 10), commit=True, version=version).error is UNKNOWN


@versions
@pytest.mark.parametrize(
    "epoch",
    [
        pytest.param(12, id="shouldReplyWithProducerFencedOnEndTxnWhenEpochIsNotSameAsTransaction"),
        pytest.param(11, id="shouldReturnInvalidEpochOnEndTxnWhenEpochIsLarger"),
        pytest.param(9, id="shouldReturnInvalidEpochOnEndTxnWhenEpochIsSmaller"),
    ],
)
def test_other_epochs(epoch: int, version: int) -> None:
    at = TransactionHarness(metadata(ONGOING))
    assert at.end(at.producer(epoch), commit=True, version=version).error is FENCED


def test_larger_epochs_before_2_6() -> None:
    """Beside: only a smaller epoch was refused."""
    at = TransactionHarness(metadata(ONGOING), era="2")
    assert at.end(at.producer(9), commit=True, version=0).error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert at.end(at.producer(11), commit=True, version=0).error is NONE


#: Case → version, state, COMMIT or ABORT, and the errors for the current epoch and for the one before it.
ANSWERS: dict[str, tuple[int, TransactionState, bool, ErrorCode, ErrorCode]] = {
    "testEndTxnWhenStatusIsCompleteCommitAndResultIsCommitInV1": (0, COMPLETE_COMMIT, COMMIT, NONE, FENCED),
    "testEndTxnWhenStatusIsCompleteCommitAndResultIsCommitInV2": (2, COMPLETE_COMMIT, COMMIT, INVALID, NONE),
    "testEndTxnWhenStatusIsCompleteAbortAndResultIsAbortInV1": (0, COMPLETE_ABORT, ABORT, NONE, FENCED),
    "shouldReturnOkOnEndTxnWhenStatusIsCompleteAbortAndResultIsAbortInV2": (2, COMPLETE_ABORT, ABORT, NONE, NONE),
    "shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsCompleteCommitAndResultIsNotCommit": (
        0,
        COMPLETE_COMMIT,
        ABORT,
        INVALID,
        FENCED,
    ),
    "testEndTxnRequestWhenStatusIsCompleteCommitAndResultIsAbortInV1": (0, COMPLETE_COMMIT, ABORT, INVALID, FENCED),
    "testEndTxnRequestWhenStatusIsCompleteCommitAndResultIsAbortInV2": (2, COMPLETE_COMMIT, ABORT, NONE, INVALID),
    "TestEndTxnRequestWhenEmptyTransactionStateForAbortInV1": (0, EMPTY, ABORT, INVALID, FENCED),
    "TestEndTxnRequestWhenEmptyTransactionStateForAbortInV2": (2, EMPTY, ABORT, NONE, FENCED),
    "TestEndTxnRequestWhenEmptyTransactionStateForCommitInV2": (2, EMPTY, COMMIT, INVALID, FENCED),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_by_state(case: str) -> None:
    version, state, commit, current, before = ANSWERS[case]
    at = TransactionHarness(metadata(state))
    at.advance(5)
    writes = len(at.log)
    late = at.end(at.producer(9), commit=commit, version=version).response
    assert (late.error, len(at.log)) == (before, writes)
    if before is NONE:
        assert late.producer == at.producer()
    ended = at.end(at.producer(10), commit=commit, version=version).response
    assert ended.error is current
    if current is NONE and version == 2:
        # nothing was added, so the abort has no markers and is complete
        prepared = at.written[-2]
        assert prepared is not None
        assert (prepared.state, prepared.producer_epoch, prepared.start_ms) == (PREPARE_ABORT, 11, START_MS + 5)
        assert (at.now().state, ended.producer, at.sent) == (COMPLETE_ABORT, ProducerEpoch(PRODUCER_ID, 11), [])
    else:
        assert len(at.log) == writes


@versions
def test_a_commit_of_an_aborted_transaction(version: int) -> None:
    """shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsCompleteAbortAndResultIsNotAbort"""
    at = TransactionHarness(metadata(COMPLETE_ABORT))
    assert at.end(at.producer(), commit=True, version=version).error is INVALID


@versions
@pytest.mark.parametrize(
    ("state", "error"),
    [
        pytest.param(PREPARE_COMMIT, BUSY, id="shouldReturnConcurrentTransactionsOnEndTxnRequestWhenStatusIsPrepareCommit"),
        pytest.param(PREPARE_ABORT, INVALID, id="shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsPrepareAbort"),
    ],
)
def test_a_commit_of_a_decided_transaction(state: TransactionState, error: ErrorCode, version: int) -> None:
    at = TransactionHarness(metadata(state))
    assert at.end(at.producer(9 if version == 2 else 10), commit=True, version=version).error is error


@pytest.mark.parametrize(("state", "error"), [(PREPARE_COMMIT, FENCED), (COMPLETE_COMMIT, INVALID)])
def test_a_commit_that_is_no_retry(state: TransactionState, error: ErrorCode) -> None:
    """shouldReturnInvalidTxnRequestOnEndTxnV2IfNotEndTxnV2Retry"""
    at = TransactionHarness(metadata(state))
    assert at.end(at.producer(), commit=True).error is error


def test_a_retry_after_an_overflow() -> None:
    """shouldReturnOkOnEndTxnV2IfEndTxnV2RetryEpochOverflow"""
    at = TransactionHarness(metadata(ONGOING, LAST_EPOCH))
    request = at.producer()
    after = at.end(request, commit=True).response.producer
    assert after == ProducerEpoch(0, 0)
    assert at.end(request, commit=True).error is BUSY
    at.acknowledge()
    assert at.now().state is COMPLETE_COMMIT
    retried = at.end(request, commit=True).response
    assert (retried.error, retried.producer) == (NONE, after)


@versions
@pytest.mark.parametrize(
    ("commit", "state"),
    [
        pytest.param(COMMIT, PREPARE_COMMIT, id="shouldAppendPrepareCommitToLogOnEndTxnWhenStatusIsOngoingAndResultIsCommit"),
        pytest.param(ABORT, PREPARE_ABORT, id="shouldAppendPrepareAbortToLogOnEndTxnWhenStatusIsOngoingAndResultIsAbort"),
    ],
)
def test_the_decision_is_written(commit: bool, state: TransactionState, version: int) -> None:
    at = TransactionHarness(metadata(ONGOING))
    ended = at.end(at.producer(), commit=commit, version=version).response
    epoch = 11 if version == 2 else 10
    assert (ended.error, ended.producer) == (NONE, ProducerEpoch(PRODUCER_ID, 11) if version == 2 else NO_PRODUCER)
    logged = at.loaded()[ID]
    assert (logged.state, logged.producer_epoch, logged.partitions) == (state, epoch, PARTITIONS)


def test_markers_wait_for_the_decision() -> None:
    """Beside: no marker and no response is sent before the log has the decision."""
    at = TransactionHarness(metadata(ONGOING))
    at.hold = True
    call = at.end(at.producer(), commit=True)
    assert (call.answered, at.sent) == (False, [])
    assert at.end(at.producer(), commit=True).error is BUSY
    at.release()
    assert call.error is NONE
    assert [batch.partitions for batch in at.sent] == [PARTITIONS]


@versions
@pytest.mark.parametrize(
    ("transactional_id", "status", "error"),
    [
        pytest.param(
            None,
            ShardStatus.ACTIVE,
            ErrorCode.INVALID_REQUEST,
            id="shouldRespondWithInvalidRequestOnEndTxnWhenTransactionalIdIsNull",
        ),
        pytest.param(
            "",
            ShardStatus.ACTIVE,
            ErrorCode.INVALID_REQUEST,
            id="shouldRespondWithInvalidRequestOnEndTxnWhenTransactionalIdIsEmpty",
        ),
        pytest.param(
            ID,
            ShardStatus.UNLOADED,
            ErrorCode.NOT_COORDINATOR,
            id="shouldRespondWithNotCoordinatorOnEndTxnWhenIsNotCoordinatorForId",
        ),
        pytest.param(
            ID,
            ShardStatus.LOADING,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            id="shouldRespondWithCoordinatorLoadInProgressOnEndTxnWhenCoordinatorIsLoading",
        ),
    ],
)
def test_requests_without_a_transaction(
    transactional_id: str | None, status: ShardStatus, error: ErrorCode, version: int
) -> None:
    at = TransactionHarness()
    at.shard.status = status
    ended = at.end(ProducerEpoch(1, 1), commit=True, version=version, transactional_id=transactional_id).response
    assert (ended.error, ended.producer) == (error, NO_PRODUCER)


# ---- timeouts


@pytest.mark.parametrize("era", ["1", "3", "4"])
def test_a_transaction_times_out(era: str) -> None:
    """shouldAbortExpiredTransactionsInOngoingStateAndBumpEpoch"""
    at = TransactionHarness(metadata(ONGOING), era=era, transaction_abort_timed_out_transaction_cleanup_interval_ms=SCAN_MS)
    at.advance(TIMEOUT_MS)
    assert at.now().state is ONGOING
    at.advance(SCAN_MS)
    assert (at.now().state, at.now().producer_epoch) == (PREPARE_ABORT, 11)
    assert at.end(at.producer(10), commit=True, version=0).error is at.config.behaviour.fenced


def test_a_transition_in_progress_does_not_time_out() -> None:
    """shouldNotAbortExpiredTransactionsThatHaveAPendingStateTransition"""
    at = TransactionHarness()
    at.put(metadata(ONGOING), pending=PREPARE_COMMIT)
    at.advance(TIMEOUT_MS + SCAN_MS)
    assert len(at.log) == 1


def test_a_refused_abort_keeps_the_epoch() -> None:
    """shouldNotBumpEpochWhenAbortingExpiredTransactionIfAppendToLogFails"""
    at = TransactionHarness(metadata(ONGOING), era="3")
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    at.advance(TIMEOUT_MS + SCAN_MS)
    assert (at.now().state, at.now().producer_epoch, at.live().has_failed_fence) == (ONGOING, 11, True)


def _at_the_boundary() -> TransactionHarness:
    at = TransactionHarness(metadata(ONGOING, LAST_EPOCH))
    at.advance(TIMEOUT_MS + SCAN_MS)
    now = at.now()
    assert (now.state, now.producer_id, now.producer_epoch, now.next_producer_id) == (PREPARE_ABORT, PRODUCER_ID, MAX_EPOCH, 0)
    return at


def test_a_timeout_at_the_last_epoch() -> None:
    """shouldHandleTimeoutAtEpochOverflowBoundaryCorrectlyTV2"""
    at = _at_the_boundary()
    at.acknowledge()
    assert (at.now().state, at.producer()) == (COMPLETE_ABORT, ProducerEpoch(0, 0))


def test_a_late_abort_after_a_timeout_at_the_last_epoch() -> None:
    """shouldHandleTimeoutAtEpochOverflowBoundaryCorrectlyAndLateClientAbortRequestTV2"""
    at = _at_the_boundary()
    at.acknowledge()
    late = at.end(ProducerEpoch(PRODUCER_ID, LAST_EPOCH), commit=False).response
    assert (late.error, late.producer) == (NONE, ProducerEpoch(0, 0))


def test_a_new_producer_after_a_timeout_at_the_last_epoch() -> None:
    """shouldHandleTimeoutAtEpochOverflowBoundaryCorrectlyAndRetryInitProducerIdTV2"""
    at = _at_the_boundary()
    assert at.init().error is BUSY
    at.acknowledge()
    assert at.init().response.producer == ProducerEpoch(0, 1)


def test_a_two_phase_transaction_does_not_time_out() -> None:
    """Beside: KIP-939."""
    at = TransactionHarness(metadata(ONGOING, timeout_ms=2**31 - 1))
    at.advance(2**31)
    assert at.now().state is ONGOING


@pytest.mark.parametrize(("era", "is_aborted"), [("3", False), ("4", True)])
def test_a_timeout_at_epoch_32767(era: str, is_aborted: bool) -> None:
    """Beside: KAFKA-20090. Before it, such a transaction could not be fenced."""
    at = TransactionHarness(metadata(ONGOING, MAX_EPOCH), era=era)
    at.advance(TIMEOUT_MS + SCAN_MS)
    assert (at.now().state is PREPARE_ABORT) == is_aborted
    assert at.now().producer_epoch == MAX_EPOCH
    if not is_aborted:
        assert at.live().pending is None


# ---- emigration and descriptions


def test_emigration() -> None:
    """shouldRemoveTransactionsForPartitionOnEmigration"""
    at = TransactionHarness(metadata(ONGOING))
    at.hold = True
    call = at.end(at.producer(), commit=True)
    result = at.shard.unload(at.epoch + 1, at.now_ms)
    assert [(answer.reply, answer.response.error) for answer in result.answers] == [(call, ErrorCode.NOT_COORDINATOR)]  # type: ignore[attr-defined]  # of EndTxn
    assert (result.markers, result.writes, at.shard.context.live) == ((), (), {})
    assert at.shard.appended(at.held[0], 1, at.now_ms).markers == ()
    assert at.init().error is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("transactional_id", "status", "state", "error"),
    [
        pytest.param(
            "", ShardStatus.ACTIVE, EMPTY, ErrorCode.INVALID_REQUEST, id="testDescribeTransactionsWithEmptyTransactionalId"
        ),
        pytest.param(
            ID,
            ShardStatus.ACTIVE,
            DEAD,
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            id="testDescribeTransactionsWithExpiringTransactionalId",
        ),
        pytest.param(
            ID,
            ShardStatus.LOADING,
            EMPTY,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            id="testDescribeTransactionsWhileCoordinatorLoading",
        ),
        pytest.param("other", ShardStatus.ACTIVE, EMPTY, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, id="unknown"),
    ],
)
def test_ids_that_cannot_be_described(
    transactional_id: str, status: ShardStatus, state: TransactionState, error: ErrorCode
) -> None:
    at = TransactionHarness(transaction_state_log_num_partitions=1)
    at.put(metadata(EMPTY)).metadata = metadata(state, partitions=frozenset())
    at.shard.status = status
    assert at.describe(transactional_id) == DescribeTransactionResponse(error, transactional_id)


def test_a_description() -> None:
    """testDescribeTransactions"""
    at = TransactionHarness(metadata(ONGOING))
    assert at.describe() == DescribeTransactionResponse(
        NONE, ID, "Ongoing", TIMEOUT_MS, START_MS, ProducerEpoch(PRODUCER_ID, 10), PARTITIONS
    )


def test_not_active() -> None:
    """Beside: after shutdown."""
    at = TransactionHarness()
    at.coordinator.active = False
    assert at.describe().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert at.init().error is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("state", [DEAD, PREPARE_EPOCH_FENCE])
def test_states_that_no_log_has(state: TransactionState) -> None:
    """Beside: a log that no broker wrote. Brokers answer UNKNOWN_SERVER_ERROR, as the service does for this exception."""
    at = TransactionHarness(metadata(state))
    at.lead()
    producer: Any = at.producer()
    with pytest.raises(Exception, match="in state"):
        at.end(producer, commit=True, version=0)
