"""Kafka's TransactionStateManagerTest: appends, loads, lists and the expiration of ids."""

from dataclasses import replace

import pytest
from transaction_harness import (
    ID,
    PARTITIONS,
    PRODUCER_ID,
    START_MS,
    TransactionHarness,
    metadata,
)

from coordinator_core.codec import encode_transaction
from coordinator_core.coordinator_common.results import ShardStatus
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.partitioner import partition_for
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import ListedTransaction, ListTransactionsResponse
from coordinator_core.state.transaction_state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionState,
)
from coordinator_core.transaction_coordinator.config import TransactionConfig
from coordinator_core.transaction_coordinator.describe import merge_lists
from coordinator_core.transaction_coordinator.transition_checks import IllegalTxnTransition

NONE, NOT_COORDINATOR = ErrorCode.NONE, ErrorCode.NOT_COORDINATOR
DAY_MS = 24 * 60 * 60 * 1000
EXPIRATION_MS = 7 * DAY_MS
HOUR_MS = 60 * 60 * 1000


def test_timeouts() -> None:
    """testValidateTransactionTimeout"""
    config = TransactionConfig()
    longest = config.transaction_max_timeout_ms
    assert [config.is_valid_timeout(ms) for ms in (1, -1, 0, longest, longest + 1)] == [True, False, False, True, False]
    assert all(config.is_valid_timeout(ms, two_phase=True) for ms in (1, -1, 0, longest, longest + 1))


def test_an_id_is_made_once() -> None:
    """testAddGetPids"""
    at = TransactionHarness()
    assert at.describe().error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert at.init().response.producer == ProducerEpoch(0, 0)
    live = at.live()
    assert at.init().response.producer == ProducerEpoch(0, 1)
    assert at.live() is live


def test_only_one_partition_is_removed() -> None:
    """testDeletePartition"""
    at = TransactionHarness()
    other = next(f"other-{n}" for n in range(100) if partition_for(f"other-{n}", 50) != at.partition)
    at.init()
    at.shard.unload(None, at.now_ms)
    assert at.init().error is NOT_COORDINATOR
    assert at.coordinator.partition_for(other) != at.partition


@pytest.mark.parametrize(
    "epoch",
    [pytest.param(None, id="testDeleteLoadingPartition"), pytest.param(1, id="testMakeFollowerLoadingPartition")],
)
def test_a_load_is_cancelled(epoch: int | None) -> None:
    at = TransactionHarness()
    shard = at.begin_load()
    shard.unload(None if epoch is None else shard.epoch + epoch, at.now_ms)
    assert (shard.status, at.init().error) == (ShardStatus.UNLOADED, NOT_COORDINATOR)


def test_a_load_and_a_removal() -> None:
    """testLoadAndRemoveTransactionsForPartition"""
    at = TransactionHarness()
    at.init()
    at.add(at.producer())
    at.end(at.producer(), commit=True, version=0)
    at.acknowledge()
    at.put(metadata(EMPTY, transactional_id="gone"))
    key, _ = encode_transaction(at.batches[0][0])
    gone = encode_transaction(replace(at.batches[0][0], key=type(at.batches[0][0].key)("gone"), value=None, value_version=None))
    at.log.append(LogRecord(at.partition, len(at.log), at.now_ms, *gone))
    assert key == at.log[0].key
    at.begin_load()
    assert at.init().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    at.lead()
    assert set(at.shard.context.live) == {ID}
    assert at.now().state is COMPLETE_COMMIT
    at.shard.unload(at.epoch + 1, at.now_ms)
    assert at.init().error is NOT_COORDINATOR


def test_a_transition_is_completed() -> None:
    """testCompleteTransitionWhenAppendSucceeded"""
    at = TransactionHarness(metadata(EMPTY))
    assert at.add_error(at.producer()) is NONE
    assert (at.now().state, at.now().partitions, at.live().pending) == (ONGOING, PARTITIONS, None)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        pytest.param(
            (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.NOT_ENOUGH_REPLICAS,
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                ErrorCode.REQUEST_TIMED_OUT,
            ),
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            id="testAppendFailToCoordinatorNotAvailableError",
        ),
        pytest.param(
            (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR),
            NOT_COORDINATOR,
            id="testAppendFailToNotCoordinatorError",
        ),
        pytest.param(
            (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE),
            ErrorCode.UNKNOWN_SERVER_ERROR,
            id="testAppendFailToUnknownError",
        ),
    ],
)
def test_the_log_refuses(errors: tuple[ErrorCode, ...], expected: ErrorCode) -> None:
    at = TransactionHarness(metadata(EMPTY))
    for error in errors:
        at.append_error = error
        assert at.add_error(at.producer()) is expected
        assert (at.now(), at.live().pending) == (metadata(EMPTY), None)


def test_the_partition_moves_during_an_append() -> None:
    """testAppendFailToCoordinatorLoadingError testAppendTransactionToLogWhileProducerFenced

    The request is answered by the unload, and the append has no effect on the next load.
    """
    at = TransactionHarness(metadata(EMPTY))
    at.hold = True
    call = at.add(at.producer())
    shard = at.shard
    (answer,) = shard.unload(at.epoch + 1, at.now_ms).answers
    assert answer.reply is call
    (write,) = at.held
    at.epoch += 1
    assert shard.begin_load(at.epoch + 1, at.now_ms)
    assert shard.appended(write, 1, at.now_ms).answers == ()
    assert shard.context.live == {}


def test_another_transition_is_pending() -> None:
    """testAppendTransactionToLogWhilePendingStateChanged"""
    at = TransactionHarness(metadata(EMPTY))
    at.hold = True
    at.add(at.producer())
    at.live().pending = PREPARE_COMMIT
    with pytest.raises(IllegalTxnTransition):
        at.release()


def test_a_refused_completion_stays_pending() -> None:
    """testPendingStateNotResetOnRetryAppend"""
    at = TransactionHarness(metadata(ONGOING))
    at.end(at.producer(), commit=True)
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    at.acknowledge()
    assert (at.now().state, at.live().pending) == (PREPARE_COMMIT, COMPLETE_COMMIT)


def test_an_id_of_another_partition() -> None:
    """shouldReturnNotCoordinatorErrorIfTransactionIdPartitionNotOwned"""
    at = TransactionHarness()
    other = next(f"other-{n}" for n in range(100) if partition_for(f"other-{n}", 50) != at.partition)
    assert at.init(other).error is NOT_COORDINATOR


def test_a_list_while_loading() -> None:
    """testListTransactionsWithCoordinatorLoadingInProgress"""
    at = TransactionHarness()
    loaded = at.list()
    at.begin_load()
    loading = at.list()
    assert loading.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert merge_lists([loaded, loading]) == ListTransactionsResponse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def test_filters_of_a_list() -> None:
    """testListTransactionsFiltering"""
    at = TransactionHarness(transaction_state_log_num_partitions=1)
    ids = {f"t{number}": state for number, state in enumerate((ONGOING, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT))}
    for number, (transactional_id, state) in enumerate(ids.items()):
        start_ms = START_MS - 1000 * number
        at.put(metadata(state, transactional_id=transactional_id, producer_id=number, start_ms=start_ms))
    at.put(metadata(EMPTY, transactional_id="empty", producer_id=9))

    def listed(**filters: object) -> set[str]:
        return {each.transactional_id for each in at.list(**filters).transactions}

    assert listed() == {*ids, "empty"}
    assert at.list(producer_ids=frozenset({1})).transactions == (ListedTransaction("t1", 1, "Ongoing"),)
    assert listed(duration_ms=0) == {"t1", "t2", "t3", "t4", "empty"}
    assert listed(duration_ms=1000) == {"t2", "t3", "t4", "empty"}
    assert listed(duration_ms=3000) == {"t4", "empty"}
    assert listed(duration_ms=-1) == {*ids, "empty"}
    assert listed(states=frozenset({"Ongoing"})) == {"t0", "t1"}
    some = at.list(states=frozenset({"Ongoing", "ongoing", "Nothing"}))
    assert (some.unknown_states, len(some.transactions)) == (("Nothing", "ongoing"), 2)
    assert listed(states=frozenset({"Nothing"})) == set()
    assert listed(producer_ids=frozenset({0, 2}), states=frozenset({"PrepareCommit"})) == {"t2"}
    assert listed(pattern="t[0-2]") == {"t0", "t1", "t2"}
    assert listed(pattern="t") == set()
    assert listed(pattern="") == {*ids, "empty"}
    assert listed(pattern="t.*", duration_ms=3000) == {"t4"}


@pytest.mark.parametrize("pattern", ["(ab(cd", "a)(b", "[", "(?=x)"])
def test_an_invalid_pattern(pattern: str) -> None:
    """testListTransactionsFilteringWithInvalidPattern"""
    assert TransactionHarness().list(pattern=pattern).error is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_is_matched_in_linear_time() -> None:
    """Beside: RE2, as in brokers."""
    at = TransactionHarness(metadata(EMPTY, transactional_id="a" * 5000 + "!"), transaction_state_log_num_partitions=1)
    assert at.list(pattern="(a+)+").transactions == ()


def test_lists_of_all_partitions() -> None:
    """Beside: partitions of other coordinators are left out."""
    one = ListTransactionsResponse(NONE, ("x",), (ListedTransaction("a", 1, "Empty"),))
    two = ListTransactionsResponse(NONE, ("x",), (ListedTransaction("b", 2, "Empty"),))
    merged = merge_lists([one, ListTransactionsResponse(NOT_COORDINATOR), two])
    assert merged == ListTransactionsResponse(NONE, ("x",), (*one.transactions, *two.transactions))
    invalid = ListTransactionsResponse(ErrorCode.INVALID_REGULAR_EXPRESSION)
    assert merge_lists([invalid, invalid]) == invalid


def test_only_open_transactions_time_out() -> None:
    """shouldOnlyConsiderTransactionsInTheOngoingStateToAbort"""
    at = TransactionHarness(transaction_state_log_num_partitions=1)
    states = (EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT)
    for state in states:
        at.put(metadata(state, transactional_id=state.label))
    at.advance(DAY_MS)
    changed = {state for state in states if at.now(state.label).state is not state}
    assert changed == {ONGOING}


@pytest.mark.parametrize("era", ["3", "4"])
@pytest.mark.parametrize(
    ("state", "kind", "after"),
    [
        pytest.param(
            PREPARE_COMMIT, ControlType.COMMIT, COMPLETE_COMMIT, id="shouldWriteTxnMarkersForTransactionInPreparedCommitState"
        ),
        pytest.param(
            PREPARE_ABORT, ControlType.ABORT, COMPLETE_ABORT, id="shouldWriteTxnMarkersForTransactionInPreparedAbortState"
        ),
    ],
)
def test_markers_after_a_load(state: TransactionState, kind: ControlType, after: TransactionState, era: str) -> None:
    at = TransactionHarness(metadata(state), era=era)
    at.crash()
    (batch,) = at.sent
    assert (batch.partitions, batch.marker.control_type) == (PARTITIONS, kind)
    assert (batch.marker.coordinator_epoch, batch.marker.producer) == (at.epoch, ProducerEpoch(PRODUCER_ID, 10))
    assert (len(at.log), at.live().pending) == (1, after)
    at.acknowledge()
    assert at.loaded()[ID].state is after


def test_a_load_of_an_empty_abort() -> None:
    """Beside: without partitions, the transaction is completed without a wait."""
    at = TransactionHarness(metadata(PREPARE_ABORT, partitions=frozenset(), client_transaction_version=2))
    at.crash()
    assert (at.sent, at.now().state) == ([], COMPLETE_ABORT)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(COMPLETE_COMMIT, id="shouldRemoveCompleteCommitExpiredTransactionalIds"),
        pytest.param(COMPLETE_ABORT, id="shouldRemoveCompleteAbortExpiredTransactionalIds"),
        pytest.param(EMPTY, id="shouldRemoveEmptyExpiredTransactionalIds"),
    ],
)
def test_unused_ids_expire(state: TransactionState) -> None:
    at = TransactionHarness(metadata(state))
    at.advance(EXPIRATION_MS - HOUR_MS)
    assert ID in at.shard.context.live
    at.advance(HOUR_MS)
    assert (at.shard.context.live, at.loaded(), at.log[-1].value) == ({}, {}, None)
    assert at.init().response.producer == ProducerEpoch(0, 0)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ErrorCode.NOT_ENOUGH_REPLICAS, id="shouldNotRemoveExpiredTransactionalIdsIfLogAppendFails"),
        pytest.param(ErrorCode.MESSAGE_TOO_LARGE, id="testTransactionalExpirationWithTooSmallBatchSize"),
    ],
)
def test_refused_tombstones(error: ErrorCode) -> None:
    at = TransactionHarness(metadata(EMPTY), message_max_bytes=1)
    at.append_error = error
    at.advance(EXPIRATION_MS)
    assert (at.now().state, at.live().pending) == (EMPTY, None)
    at.append_error = None
    at.advance(HOUR_MS)
    assert at.shard.context.live == {}


@pytest.mark.parametrize(
    ("state", "pending"),
    [
        pytest.param(ONGOING, None, id="shouldNotRemoveOngoingTransactionalIds"),
        pytest.param(PREPARE_ABORT, None, id="shouldNotRemovePrepareAbortTransactionalIds"),
        pytest.param(PREPARE_COMMIT, None, id="shouldNotRemovePrepareCommitTransactionalIds"),
        pytest.param(EMPTY, ONGOING, id="pending"),
    ],
)
def test_used_ids_do_not_expire(state: TransactionState, pending: TransactionState | None) -> None:
    at = TransactionHarness()
    at.put(metadata(state, timeout_ms=2**31 - 1), pending=pending)
    at.advance(2 * EXPIRATION_MS)
    assert (len(at.log), at.now().state) == (1, state)


def test_tombstones_in_batches() -> None:
    """testTransactionExpirationShouldRespectBatchSize"""
    at = TransactionHarness(transaction_state_log_num_partitions=1, message_max_bytes=1000)
    for number in range(50):
        at.put(metadata(EMPTY, transactional_id=f"{number:03}-{'x' * 40}"))
    at.advance(EXPIRATION_MS)
    assert (at.shard.context.live, at.loaded()) == ({}, {})
    assert 3 < len(at.batches) < 10
    for batch in at.batches:
        assert 61 + sum(8 + len(encode_transaction(record)[0]) for record in batch) <= 1000


def test_an_id_without_a_record_expires() -> None:
    """testTransactionExpirationShouldNotFailWithUninitializedTransactionMetadata"""
    at = TransactionHarness()
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert at.init().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert at.now().producer_epoch == -1
    at.append_error = None
    at.advance(EXPIRATION_MS)
    assert (at.shard.context.live, [record.value for record in at.log]) == ({}, [None])


def test_an_id_that_changed_does_not_expire() -> None:
    """Beside: the epoch was changed while the tombstone was appended."""
    at = TransactionHarness()
    live = at.put(metadata(EMPTY))
    at.hold = True
    at.advance(EXPIRATION_MS)
    live.metadata = metadata(EMPTY, 11)
    at.release()
    assert (at.live(), live.pending) == (live, None)


def test_another_load_has_its_own_epoch() -> None:
    """testSuccessfulReimmigration"""
    at = TransactionHarness(metadata(EMPTY))
    first = at.shard.context
    shard = at.shard
    shard.unload(at.epoch + 1, at.now_ms)
    assert shard.begin_load(at.epoch + 2, at.now_ms)
    shard.replay(at.log)
    shard.finish_load(at.now_ms)
    assert shard.context is not first
    assert (shard.context.coordinator_epoch, set(shard.context.live)) == (at.epoch + 2, {ID})
    assert not shard.begin_load(at.epoch + 2, at.now_ms)


@pytest.mark.parametrize(("era", "version"), [("1", 0), ("2", 0), ("3", 0), ("4", 2)])
def test_the_level_of_the_era(era: str, version: int) -> None:
    """testTransactionVersionInTransactionManager"""
    assert TransactionConfig(era=era).behaviour.transaction_version == version


def test_invalid_settings() -> None:
    with pytest.raises(ValueError, match="has no transactions"):
        TransactionConfig(era="0.10")
    with pytest.raises(ValueError, match="transaction_max_timeout_ms is 0"):
        TransactionConfig(transaction_max_timeout_ms=0)
