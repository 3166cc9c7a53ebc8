"""Kafka's TransactionCoordinatorTest: AddPartitionsToTxn, AddOffsetsToTxn and the verification of partitions."""

import pytest
from transaction_harness import ID, OFFSETS, PARTITIONS, START_MS, T0, T1, TransactionHarness, metadata

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.coordinator_common.results import ShardStatus
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
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

NONE, FENCED, BUSY = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED, ErrorCode.CONCURRENT_TRANSACTIONS
UNKNOWN = ErrorCode.INVALID_PRODUCER_ID_MAPPING
PRODUCER = ProducerEpoch(1, 1)


@pytest.mark.parametrize(
    ("transactional_id", "status", "error"),
    [
        pytest.param(
            ID,
            ShardStatus.ACTIVE,
            UNKNOWN,
            id="shouldRespondWithInvalidPidMappingOnAddPartitionsToTransactionWhenTransactionalIdNotPresent",
        ),
        pytest.param(
            "",
            ShardStatus.ACTIVE,
            ErrorCode.INVALID_REQUEST,
            id="shouldRespondWithInvalidRequestAddPartitionsToTransactionWhenTransactionalIdIsEmpty",
        ),
        pytest.param(
            None,
            ShardStatus.ACTIVE,
            ErrorCode.INVALID_REQUEST,
            id="shouldRespondWithInvalidRequestAddPartitionsToTransactionWhenTransactionalIdIsNull",
        ),
        pytest.param(
            ID,
            ShardStatus.UNLOADED,
            ErrorCode.NOT_COORDINATOR,
            id="shouldRespondWithNotCoordinatorOnAddPartitionsWhenNotCoordinator",
        ),
        pytest.param(
            ID,
            ShardStatus.LOADING,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            id="shouldRespondWithCoordinatorLoadInProgressOnAddPartitionsWhenCoordinatorLoading",
        ),
    ],
)
def test_requests_without_a_transaction(transactional_id: str | None, status: ShardStatus, error: ErrorCode) -> None:
    at = TransactionHarness()
    at.shard.status = status
    assert at.add_error(PRODUCER, PARTITIONS, transactional_id) is error


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(PREPARE_COMMIT, id="shouldRespondWithConcurrentTransactionsOnAddPartitionsWhenStateIsPrepareCommit"),
        pytest.param(PREPARE_ABORT, id="shouldRespondWithConcurrentTransactionOnAddPartitionsWhenStateIsPrepareAbort"),
    ],
)
def test_decided_transactions(state: TransactionState) -> None:
    at = TransactionHarness(metadata(state))
    assert at.add_error(at.producer()) is BUSY


@pytest.mark.parametrize(("era", "error"), [("1", ErrorCode.INVALID_PRODUCER_EPOCH), ("3", FENCED), ("4", FENCED)])
@pytest.mark.parametrize("epoch", [9, 11])
def test_other_epochs(era: str, error: ErrorCode, epoch: int) -> None:
    """shouldRespondWithProducerFencedOnAddPartitionsWhenEpochsAreDifferent"""
    at = TransactionHarness(metadata(PREPARE_COMMIT), era=era)
    assert at.add_error(at.producer(epoch)) is error
    assert at.log[1:] == []


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(EMPTY, id="shouldAppendNewMetadataToLogOnAddPartitionsWhenPartitionsAdded"),
        pytest.param(ONGOING, id="shouldRespondWithSuccessOnAddPartitionsWhenStateIsOngoing"),
        pytest.param(COMPLETE_COMMIT, id="shouldRespondWithSuccessOnAddPartitionsWhenStateIsCompleteCommit"),
        pytest.param(COMPLETE_ABORT, id="shouldRespondWithSuccessOnAddPartitionsWhenStateIsCompleteAbort"),
    ],
)
@pytest.mark.parametrize("from_broker", [False, True])
@pytest.mark.parametrize("era", ["1", "3", "4"])
def test_partitions_are_added(state: TransactionState, from_broker: bool, era: str) -> None:
    at = TransactionHarness(metadata(state), era=era)
    at.advance(5)
    new = TopicPartition("topic2", 7)
    assert at.add_error(at.producer(), [new], from_broker=from_broker) is NONE
    logged = at.loaded()[ID]
    assert (logged.state, logged.producer_epoch, logged.last_update_ms) == (ONGOING, 10, START_MS + 5)
    assert logged.partitions == ({new, *PARTITIONS} if state is ONGOING else {new})
    assert logged.start_ms == (START_MS if state is ONGOING else START_MS + 5)
    assert at.now().client_transaction_version == (2 if from_broker else 0)


def test_nothing_new_is_not_written() -> None:
    """Beside: an Ongoing transaction that has the partitions."""
    at = TransactionHarness(metadata(ONGOING))
    assert at.add_error(at.producer(), [T1]) is NONE
    assert len(at.log) == 1


def test_verification_does_not_look_at_the_state() -> None:
    """shouldRespondWithErrorsNoneOnAddPartitionWhenNoErrorsAndPartitionsTheSame"""
    at = TransactionHarness()
    at.put(metadata(COMPLETE_COMMIT)).metadata = metadata(EMPTY, partitions=PARTITIONS)
    assert at.verify(at.producer()) == {T0: NONE, T1: NONE}
    assert len(at.log) == 1


def test_verification_of_an_open_transaction() -> None:
    """shouldRespondWithErrorsNoneOnAddPartitionWhenOngoingVerifyOnlyAndPartitionsTheSame"""
    at = TransactionHarness(metadata(ONGOING))
    assert at.verify(at.producer()) == {T0: NONE, T1: NONE}


def test_verification_of_a_missing_partition() -> None:
    """shouldRespondWithInvalidTxnStateWhenVerifyOnlyAndPartitionNotPresent"""
    at = TransactionHarness(metadata(ONGOING, partitions=frozenset({T0})))
    assert at.verify(at.producer()) == {T0: NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}


def test_verification() -> None:
    """testVerifyPartitionHandling"""
    at = TransactionHarness()
    live = at.put(metadata(ONGOING, partitions=frozenset({T0})), pending=COMPLETE_COMMIT)
    assert set(at.verify(ProducerEpoch(1, 10)).values()) == {UNKNOWN}
    assert set(at.verify(at.producer(9)).values()) == {FENCED}
    assert at.verify(at.producer(), [T1]) == {T1: ErrorCode.TRANSACTION_ABORTABLE}
    live.metadata = metadata(PREPARE_COMMIT)
    assert set(at.verify(at.producer()).values()) == {BUSY}


def test_the_next_producer_id_waits_for_the_completion() -> None:
    """shouldReturnConcurrentTxnOnAddPartitionsIfEndTxnV2EpochOverflowAndNotComplete"""
    at = TransactionHarness(metadata(ONGOING, MAX_EPOCH - 1))
    after = at.end(at.producer(), commit=True).response.producer
    assert at.add_error(after, from_broker=True) is BUSY
    at.acknowledge()
    assert at.add_error(after, from_broker=True) is NONE


@pytest.mark.parametrize(("era", "error"), [("3", UNKNOWN), ("4", BUSY)])
def test_order_of_the_checks(era: str, error: ErrorCode) -> None:
    """Beside: KAFKA-18660."""
    at = TransactionHarness(era=era)
    at.put(metadata(ONGOING), pending=PREPARE_COMMIT)
    assert at.add_error(PRODUCER) is error


def test_unknown_partitions() -> None:
    """Beside: testAddPartitionsToTxnOperationNotAttempted of KafkaApisTest."""
    at = TransactionHarness(metadata(EMPTY))
    at.missing.add(T1)
    assert at.add(at.producer()).response.errors == {
        T0: ErrorCode.OPERATION_NOT_ATTEMPTED,
        T1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert at.now().state is EMPTY


def test_internal_topics() -> None:
    """Beside: clients add offsets by AddOffsetsToTxn, brokers by AddPartitionsToTxn."""
    at = TransactionHarness(metadata(EMPTY))
    assert at.add_error(at.producer(), [OFFSETS]) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert at.add_error(at.producer(), [OFFSETS], from_broker=True) is NONE
    assert at.now().partitions == {OFFSETS}


def test_offsets_are_added() -> None:
    """Beside: AddOffsetsToTxn adds the partition of the group."""
    at = TransactionHarness()
    assert at.add_offsets(PRODUCER).error is UNKNOWN
    at.put(metadata(EMPTY))
    assert at.add_offsets(at.producer(9)).error is FENCED
    assert at.add_offsets(at.producer()).error is NONE
    assert at.loaded()[ID].partitions == {OFFSETS}
