"""Kafka's TransactionMetadataTest: the transitions of one id."""

from collections.abc import Callable

import pytest
from transaction_harness import PARTITIONS, PRODUCER_ID, START_MS, T0, TIMEOUT_MS, metadata

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.state.transaction_metadata import MAX_EPOCH, TransactionMetadata
from coordinator_core.state.transaction_state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARE_EPOCH_FENCE,
    STATES_BY_LABEL,
    VALID_PREVIOUS_STATES,
    TransactionState,
)
from coordinator_core.transaction_coordinator.behaviour import TRANSACTION_BEHAVIOURS
from coordinator_core.transaction_coordinator.live_transaction import LiveTransaction, RequestRefused
from coordinator_core.transaction_coordinator.transition_checks import IllegalTxnTransition, check_transition

EARLIER = START_MS - 1
LAST_EPOCH = MAX_EPOCH - 1
versions = pytest.mark.parametrize("version", [0, 2])


def live(state: TransactionState, epoch: int = 10, era: str = "4", **changes: object) -> LiveTransaction:
    return LiveTransaction(metadata(state, epoch, **changes), TRANSACTION_BEHAVIOURS[era])


def completed(at: LiveTransaction, target: TransactionMetadata) -> TransactionMetadata:
    at.complete(target)
    assert at.pending is None
    assert at.metadata == target
    return target


def producer(now: TransactionMetadata) -> tuple[int, int, int]:
    return now.producer_id, now.producer_epoch, now.last_producer_epoch


def test_the_first_epoch() -> None:
    """testInitializeEpoch"""
    at = live(EMPTY, -1)
    assert producer(completed(at, at.prepare_init(TIMEOUT_MS, None, START_MS))) == (PRODUCER_ID, 0, -1)


def test_the_next_epoch() -> None:
    """testNormalEpochBump"""
    at = live(EMPTY)
    assert producer(completed(at, at.prepare_init(TIMEOUT_MS, None, START_MS))) == (PRODUCER_ID, 11, -1)


def test_no_epoch_is_left() -> None:
    """testBumpEpochNotAllowedIfEpochsExhausted"""
    with pytest.raises(IllegalTxnTransition):
        live(EMPTY, LAST_EPOCH).prepare_init(TIMEOUT_MS, None, START_MS)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(EMPTY, id="testTransitFromEmptyToPrepareAbortInV2"),
        pytest.param(COMPLETE_ABORT, id="testTransitFromCompleteAbortToPrepareAbortInV2"),
        pytest.param(COMPLETE_COMMIT, id="testTransitFromCompleteCommitToPrepareAbortInV2"),
    ],
)
def test_an_empty_abort(state: TransactionState) -> None:
    at = live(state)
    ended = completed(at, at.prepare_end(PREPARE_ABORT, START_MS + 1, 2, is_empty=True))
    assert producer(ended) == (PRODUCER_ID, 11, 10)
    assert (ended.start_ms, ended.last_update_ms) == (START_MS + 1, START_MS + 1)


#: Case → state before, and the transition at an earlier time.
SHIFTED: dict[str, tuple[TransactionState, Callable[[LiveTransaction], TransactionMetadata]]] = {
    "testTolerateUpdateTimeShiftDuringEpochBump": (EMPTY, lambda at: at.prepare_init(TIMEOUT_MS, 10, EARLIER)),
    "testTolerateUpdateTimeResetDuringProducerIdRotation": (
        EMPTY,
        lambda at: at.prepare_rotation(PRODUCER_ID + 1, TIMEOUT_MS, EARLIER, keeps_last_epoch=True),
    ),
    "testTolerateTimeShiftDuringAddPartitions": (EMPTY, lambda at: at.prepare_add(PARTITIONS, EARLIER, 0)),
    "testTolerateTimeShiftDuringPrepareCommit": (ONGOING, lambda at: at.prepare_end(PREPARE_COMMIT, EARLIER, 0)),
    "testTolerateTimeShiftDuringPrepareAbort": (ONGOING, lambda at: at.prepare_end(PREPARE_ABORT, EARLIER, 0)),
    "testTolerateTimeShiftDuringCompleteCommit": (PREPARE_COMMIT, lambda at: at.prepare_complete(EARLIER)),
    "testTolerateTimeShiftDuringCompleteAbort": (PREPARE_ABORT, lambda at: at.prepare_complete(EARLIER)),
}


@versions
@pytest.mark.parametrize("case", SHIFTED)
def test_the_clock_went_back(case: str, version: int) -> None:
    state, transition = SHIFTED[case]
    at = live(state, client_transaction_version=version)
    before = at.metadata
    after = completed(at, transition(at))
    assert after.last_update_ms == EARLIER
    if before.state.is_prepared:
        assert (
            after._replace(state=before.state, partitions=PARTITIONS, last_update_ms=START_MS, previous_producer_id=-1) == before
        )
    if after.state is ONGOING:
        assert (after.start_ms, after.partitions) == (EARLIER, PARTITIONS)


def test_a_fence_with_the_last_epoch() -> None:
    """testFenceProducerAfterEpochsExhausted"""
    at = live(ONGOING, LAST_EPOCH)
    assert producer(at.prepare_fence()) == (PRODUCER_ID, MAX_EPOCH, -1)
    assert at.pending is PREPARE_EPOCH_FENCE
    with pytest.raises(IllegalTxnTransition):
        at.prepare_init(TIMEOUT_MS, None, START_MS)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(COMPLETE_COMMIT, id="testInvalidTransitionFromCompleteCommitToFence"),
        pytest.param(COMPLETE_ABORT, id="testInvalidTransitionFromCompleteAbortToFence"),
    ],
)
def test_only_open_transactions_are_fenced(state: TransactionState) -> None:
    with pytest.raises(IllegalTxnTransition):
        live(state).prepare_fence()


def test_a_fence_after_the_last_epoch() -> None:
    """testFenceProducerNotAllowedIfItWouldOverflow"""
    assert live(ONGOING, MAX_EPOCH).prepare_fence().producer_epoch == MAX_EPOCH
    with pytest.raises(IllegalTxnTransition):
        live(ONGOING, MAX_EPOCH, era="3").prepare_fence()


def test_a_new_producer_id() -> None:
    """testRotateProducerId"""
    at = live(EMPTY, LAST_EPOCH)
    rotated = completed(at, at.prepare_rotation(PRODUCER_ID + 1, TIMEOUT_MS, START_MS, keeps_last_epoch=True))
    assert producer(rotated) == (PRODUCER_ID + 1, 0, LAST_EPOCH)
    assert rotated.previous_producer_id == PRODUCER_ID


def test_an_end_increments_the_epoch() -> None:
    """testEpochBumpOnEndTxn"""
    at = live(ONGOING)
    prepared = completed(at, at.prepare_end(PREPARE_COMMIT, START_MS, 2))
    assert (*producer(prepared), prepared.client_transaction_version) == (PRODUCER_ID, 11, 10, 2)
    done = completed(at, at.prepare_complete(START_MS))
    assert (*producer(done), done.client_transaction_version) == (PRODUCER_ID, 11, 10, 2)


def test_an_end_with_the_last_epoch() -> None:
    """testEpochBumpOnEndTxnOverflow"""
    at = live(ONGOING, LAST_EPOCH)
    prepared = completed(at, at.prepare_end(PREPARE_COMMIT, START_MS, 2, next_producer_id=PRODUCER_ID + 1))
    assert producer(prepared) == (PRODUCER_ID, MAX_EPOCH, LAST_EPOCH)
    done = completed(at, at.prepare_complete(START_MS))
    assert producer(done) == (PRODUCER_ID + 1, 0, LAST_EPOCH)
    assert (done.previous_producer_id, done.next_producer_id) == (PRODUCER_ID, -1)


@versions
@pytest.mark.parametrize(
    "state",
    [
        pytest.param(ONGOING, id="testRotateProducerIdInOngoingState"),
        pytest.param(PREPARE_ABORT, id="testRotateProducerIdInPrepareAbortState"),
        pytest.param(PREPARE_COMMIT, id="testRotateProducerIdInPrepareCommitState"),
    ],
)
def test_the_producer_id_of_an_open_transaction(state: TransactionState, version: int) -> None:
    with pytest.raises(IllegalTxnTransition):
        live(state, client_transaction_version=version).prepare_rotation(1, TIMEOUT_MS, START_MS, keeps_last_epoch=False)


@pytest.mark.parametrize(
    ("epoch", "last_epoch", "expected", "after"),
    [
        pytest.param(-1, -1, 735, (0, -1), id="testAttemptedEpochBumpWithNewlyCreatedMetadata"),
        pytest.param(735, -1, 735, (736, 735), id="testEpochBumpWithCurrentEpochProvided"),
        pytest.param(735, 734, 734, (735, 734), id="testAttemptedEpochBumpWithLastEpoch"),
    ],
)
def test_the_epoch_of_the_client(epoch: int, last_epoch: int, expected: int, after: tuple[int, int]) -> None:
    at = live(EMPTY, epoch, last_producer_epoch=last_epoch)
    assert producer(completed(at, at.prepare_init(TIMEOUT_MS, expected, START_MS)))[1:] == after


def test_a_fenced_client() -> None:
    """testAttemptedEpochBumpWithFencedEpoch"""
    with pytest.raises(RequestRefused) as refused:
        live(EMPTY, 735, last_producer_epoch=734).prepare_init(TIMEOUT_MS, 733, START_MS)
    assert refused.value.error is ErrorCode.PRODUCER_FENCED


LABELS = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


def test_names_of_states() -> None:
    """testTransactionStateIdAndNameMapping"""
    assert {state.value: state.label for state in TransactionState} == dict(enumerate(LABELS))
    assert {label: state.value for label, state in STATES_BY_LABEL.items()} == {label: n for n, label in enumerate(LABELS)}


def test_every_state_has_transitions() -> None:
    """testAllTransactionStatesAreMapped"""
    assert set(VALID_PREVIOUS_STATES) == set(TransactionState)
    assert {state for state in TransactionState if state.expires} == {EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT}


#: Targets that a coordinator never makes, with the state before.
BROKEN = [
    (EMPTY, metadata(EMPTY, 12)),
    (EMPTY, metadata(EMPTY, 11, partitions=PARTITIONS)),
    (EMPTY, metadata(EMPTY, 11, start_ms=5)),
    (ONGOING, metadata(ONGOING, 11)),
    (ONGOING, metadata(ONGOING, partitions=frozenset({T0}))),
    (ONGOING, metadata(ONGOING, timeout_ms=1)),
    (ONGOING, metadata(PREPARE_COMMIT, 11)),
    (ONGOING, metadata(PREPARE_COMMIT, partitions=frozenset({T0}))),
    (ONGOING, metadata(PREPARE_COMMIT, start_ms=1)),
    (ONGOING, metadata(PREPARE_ABORT, 12, client_transaction_version=2, last_producer_epoch=9)),
    (PREPARE_COMMIT, metadata(COMPLETE_COMMIT, 11)),
    (PREPARE_COMMIT, metadata(COMPLETE_COMMIT, start_ms=-1)),
    (PREPARE_COMMIT, metadata(COMPLETE_COMMIT, 0, client_transaction_version=2, last_producer_epoch=3)),
    (ONGOING, metadata(PREPARE_EPOCH_FENCE)),
    (EMPTY, metadata(DEAD)),
]


@pytest.mark.parametrize(("state", "target"), BROKEN)
def test_targets_that_do_not_fit(state: TransactionState, target: TransactionMetadata) -> None:
    """Beside: `completeTransitionTo`."""
    with pytest.raises(IllegalTxnTransition, match="cannot become"):
        check_transition(metadata(state), target)


def test_invalid_preparations() -> None:
    """Beside: `prepareTransitionTo`."""
    at = live(EMPTY)
    at.prepare_add(PARTITIONS, START_MS, 0)
    with pytest.raises(IllegalTxnTransition, match="pending"):
        at.prepare_add(PARTITIONS, START_MS, 0)
    with pytest.raises(IllegalTxnTransition, match="PrepareCommit completed"):
        at.complete(metadata(PREPARE_COMMIT))
    with pytest.raises(IllegalTxnTransition, match="producer id -1"):
        live(EMPTY).prepare_rotation(-1, TIMEOUT_MS, START_MS, keeps_last_epoch=False)
    with pytest.raises(IllegalTxnTransition, match="epoch -1"):
        live(EMPTY, -1).prepare_add(PARTITIONS, START_MS, 0)
    with pytest.raises(IllegalTxnTransition, match="marker"):
        live(ONGOING).marker_written(TopicPartition("topic1", 0))
    assert live(EMPTY, -1).prepare_dead().state is DEAD


def test_an_empty_id_keeps_its_start_time_before_4_0() -> None:
    """Beside: only in memory."""
    at = live(COMPLETE_COMMIT, era="3")
    at.complete(at.prepare_init(TIMEOUT_MS, None, START_MS + 9))
    assert at.metadata.start_ms == START_MS
