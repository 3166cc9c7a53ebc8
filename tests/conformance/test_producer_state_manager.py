"""The cases of Kafka's `ProducerStateManagerTest` (4.3); each test names the case it mirrors."""

from pathlib import Path

import pytest
from producer_states import ABORT, COMMIT, EPOCH, EXPIRATION_MS, NEWEST, PRODUCER, States, first_data_offset

from coordinator_core.log.record_batch import write_batch
from coordinator_core.producers.append import (
    AppendOrigin,
    CompletedTransaction,
    DataBatch,
    Marker,
    ProducerAppend,
    ProducerRejected,
)
from coordinator_core.producers.entry import BatchMetadata, ProducerStateEntry
from coordinator_core.producers.leader_checks import check_client_batch
from coordinator_core.producers.rules import ProducerError
from coordinator_core.producers.snapshot import CorruptSnapshot, read_snapshot, write_snapshot
from coordinator_core.producers.state_manager import LATE_TRANSACTION_BUFFER_MS
from coordinator_core.segment_log.producer_replay import replay_batch

MAX_SEQUENCE = (1 << 31) - 1
MAX_TIMEOUT_MS = 5 * 60 * 1000
LATE_MS = MAX_TIMEOUT_MS + LATE_TRANSACTION_BUFFER_MS
VERSIONS = pytest.mark.parametrize("version", [0, 2])


@pytest.fixture
def states(tmp_path: Path) -> States:
    return States(tmp_path)


class Refused:
    """A context whose body must be refused with this error."""

    def __init__(self, error: str) -> None:
        self._error = ProducerError[error]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        assert isinstance(error, ProducerRejected)
        assert error.error is self._error
        return True


def out_of_order() -> Refused:
    return Refused("OUT_OF_ORDER_SEQUENCE_NUMBER")


def stale_epoch() -> Refused:
    return Refused("INVALID_PRODUCER_EPOCH")


def is_late(states: States) -> bool:
    return states.manager.has_late_transaction(states.now, MAX_TIMEOUT_MS)


def test_basic_id_mapping(states: States) -> None:
    """testBasicIdMapping"""
    states.append(0, 0)
    states.append(1, 1)
    with out_of_order():
        states.append(1, 1)
    with out_of_order():
        states.append(5, 2)
    states.append(0, 3, epoch=EPOCH + 1)
    with stale_epoch():
        states.append(0, 4)


def test_append_marker_with_no_producer_state(states: States) -> None:
    """testAppendTxnMarkerWithNoProducerState"""
    states.marker(27, epoch=2)
    assert (states.entry().epoch, states.entry().last_sequence) == (2, -1)
    with stale_epoch():
        states.append(0, 4, epoch=0)
    with out_of_order():
        states.append(17, 4, epoch=2)
    states.append(0, 39, epoch=2)
    assert (states.entry().epoch, states.entry().last_sequence) == (2, 0)


def test_sequence_wraps_around(states: States) -> None:
    """testProducerSequenceWrapAround"""
    states.append(MAX_SEQUENCE, 735, epoch=15, origin=AppendOrigin.REPLICATION)
    states.append(0, 1235, epoch=15)
    assert (states.entry().first_sequence, states.entry().last_sequence) == (MAX_SEQUENCE, 0)


def test_sequence_wraps_around_within_a_batch(states: States) -> None:
    """testProducerSequenceWithWrapAroundBatchRecord"""
    states.append(MAX_SEQUENCE - 10, 2000, count=21, epoch=15, origin=AppendOrigin.REPLICATION)
    entry = states.entry()
    assert (entry.first_sequence, entry.last_sequence) == (MAX_SEQUENCE - 10, 9)
    assert (first_data_offset(entry), entry.last_data_offset) == (2000, 2020)


def test_invalid_wrap_around(states: States) -> None:
    """testProducerSequenceInvalidWrapAround"""
    states.append(MAX_SEQUENCE, 735, epoch=15, origin=AppendOrigin.REPLICATION)
    with out_of_order():
        states.append(1, 1235, epoch=15)


def test_first_entry_of_a_loaded_log_is_not_checked(states: States) -> None:
    """testNoValidationOnFirstEntryWhenLoadingLog"""
    states.append(16, 735, epoch=5, origin=AppendOrigin.REPLICATION)
    entry = states.entry()
    assert (entry.epoch, entry.first_sequence, entry.last_sequence) == (5, 16, 16)
    assert (first_data_offset(entry), entry.last_data_offset) == (735, 735)


def test_marker_bumps_the_epoch(states: States) -> None:
    """testControlRecordBumpsProducerEpoch"""
    states.append(0, 0)
    states.marker(1, ABORT, epoch=1)
    entry = states.entry()
    assert (entry.epoch, entry.in_transaction, entry.first_sequence, entry.last_sequence) == (1, False, -1, -1)
    states.append(0, 2, epoch=1)
    assert states.entry().first_sequence == 0


def test_first_offset_of_a_transaction(states: States) -> None:
    """testTxnFirstOffsetMetadataCached; the position in the segment is not kept, since no index look-up depends on it."""
    states.manager.verifications.get_or_create(PRODUCER, 0, EPOCH, states.now)
    states.append(0, 992_342, transactional=True)
    assert states.manager.first_unstable_offset() == 992_342


@VERSIONS
def test_late_transactions(states: States, version: int) -> None:
    """testHasLateTransaction"""
    states.append(0, 100, producer=39, epoch=2, transactional=True)
    assert not is_late(states)
    states.now += 500
    states.append(0, 150, producer=57, epoch=9, transactional=True)
    assert not is_late(states)
    states.now += LATE_MS - 500 + 1
    assert is_late(states)
    states.now += 500
    bump = 1 if version else 0
    states.marker(200, producer=39, epoch=2 + bump, version=version)
    assert is_late(states)
    states.marker(250, producer=57, epoch=9 + bump, version=version)
    assert not is_late(states)


def test_late_transaction_after_a_reload(states: States) -> None:
    """testHasLateTransactionInitializedAfterReload"""
    states.append(0, 100, producer=39, epoch=2, transactional=True)
    states.now += 500
    states.append(0, 150, producer=57, epoch=9, transactional=True)
    states.snapshot()
    states.now += LATE_MS - 500 + 1
    assert is_late(states)
    assert is_late(states.reloaded())


def test_late_transaction_after_truncation(states: States) -> None:
    """testHasLateTransactionUpdatedAfterPartialTruncation, testHasLateTransactionUpdatedAfterFullTruncation"""
    states.append(0, 100, epoch=2, transactional=True)
    states.now += LATE_MS + 1
    assert is_late(states)
    states.manager.start_at(80)
    assert not is_late(states)


def test_checks_do_not_change_the_state(states: States) -> None:
    """testPrepareUpdateDoesNotMutate"""
    append = states.manager.prepare_update(PRODUCER, AppendOrigin.CLIENT)
    append.append_data(DataBatch(PRODUCER, EPOCH, 0, 15, 20, states.now, False))
    assert states.manager.entries == {}
    states.manager.update(append)
    following = states.manager.prepare_update(PRODUCER, AppendOrigin.CLIENT)
    following.append_data(DataBatch(PRODUCER, EPOCH, 6, 26, 30, states.now, False))
    entry = states.entry()
    assert (entry.first_sequence, entry.last_sequence, entry.last_data_offset) == (0, 5, 20)
    states.manager.update(following)
    entry = states.entry()
    assert (entry.first_sequence, entry.last_sequence, entry.last_data_offset) == (0, 10, 30)


def test_transaction_state_of_a_producer(states: States) -> None:
    """updateProducerTransactionState; the entry here has the earlier batches, too."""
    states.append(0, 9)
    append = states.manager.prepare_update(PRODUCER, AppendOrigin.CLIENT)
    append.append_data(DataBatch(PRODUCER, EPOCH, 1, 16, 20, states.now, True))
    assert (append.entry.last_sequence, append.entry.last_data_offset, append.entry.current_txn_first_offset) == (5, 20, 16)
    append.append_data(DataBatch(PRODUCER, EPOCH, 6, 26, 30, states.now, True))
    assert (append.entry.last_sequence, append.entry.last_data_offset, append.entry.current_txn_first_offset) == (10, 30, 16)
    assert append.started == [16]
    completed = append.append_marker(Marker(PRODUCER, EPOCH, COMMIT, 15, 40, states.now))
    assert completed == CompletedTransaction(PRODUCER, 16, 40, False)
    assert (append.entry.last_sequence, append.entry.last_data_offset, append.entry.in_transaction) == (10, 30, False)


def test_out_of_sequence_after_an_epoch_bump(states: States) -> None:
    """testOutOfSequenceAfterControlRecordEpochBump"""
    states.append(0, 0, transactional=True)
    states.append(1, 1, transactional=True)
    states.marker(1, ABORT, epoch=1)
    with out_of_order():
        states.append(2, 2, epoch=1, transactional=True)
    with out_of_order():
        states.append(2, 2, epoch=2, transactional=True)
    states.append(0, 0, epoch=1, transactional=True)
    assert (states.entry().epoch, states.entry().last_sequence) == (1, 0)


def test_plain_batch_in_a_transaction(states: States) -> None:
    """testNonTransactionalAppendWithOngoingTransaction"""
    states.append(0, 0, transactional=True)
    with Refused("INVALID_TXN_STATE"):
        states.append(1, 1)


def test_snapshots_after_the_end_are_removed(states: States) -> None:
    """testTruncateAndReloadRemovesOutOfRangeSnapshots; snapshots exist at segments and at the end of the log."""
    assert states.files is not None
    for sequence in range(5):
        states.append(sequence, sequence)
        states.snapshot()
    states.files.reset([2], 3, ())
    assert states.files.snapshot_offsets() == [2, 3]


def test_take_snapshot(states: States, tmp_path: Path) -> None:
    """testTakeSnapshot"""
    states.append(0, 0)
    states.append(1, 1)
    states.snapshot()
    (path,) = tmp_path.iterdir()
    assert path.name == "00000000000000000002.snapshot"
    assert path.stat().st_size == 10 + 46


def test_missing_snapshot(states: States) -> None:
    """testFetchSnapshotEmptySnapShot"""
    assert states.files is not None
    states.files.load(states.manager, 1)
    assert (dict(states.manager.entries), states.manager.map_end_offset) == ({}, 1)


def test_recovery_of_an_unfinished_transaction(states: States) -> None:
    """testRecoverFromSnapshotUnfinishedTransaction"""
    states.append(0, 0, transactional=True)
    states.append(1, 1, transactional=True)
    states.snapshot()
    recovered = states.reloaded()
    entry = recovered.entry()
    assert (first_data_offset(entry), entry.first_sequence, entry.last_data_offset, entry.last_sequence) == (1, 1, 1, 1)
    assert entry.current_txn_first_offset == 0
    recovered.append(2, 2, transactional=True)


def test_recovery_of_a_finished_transaction(states: States) -> None:
    """testRecoverFromSnapshotFinishedTransaction"""
    states.append(0, 0, transactional=True)
    states.append(1, 1, transactional=True)
    states.marker(2, ABORT)
    states.snapshot()
    entry = states.reloaded().entry()
    assert (first_data_offset(entry), entry.first_sequence, entry.last_data_offset, entry.last_sequence) == (1, 1, 1, 1)
    assert not entry.in_transaction


def test_recovery_of_an_empty_transaction(states: States) -> None:
    """testRecoverFromSnapshotEmptyTransaction"""
    states.marker(0, ABORT, timestamp=777)
    states.now = 800
    states.snapshot()
    entry = states.reloaded().entry()
    assert (entry.last_timestamp, entry.in_transaction) == (777, False)


def test_state_after_a_fencing_marker(states: States) -> None:
    """testProducerStateAfterFencingAbortMarker"""
    states.append(0, 0, transactional=True)
    states.marker(1, ABORT, epoch=EPOCH + 1)
    entry = states.entry()
    assert (entry.in_transaction, first_data_offset(entry), entry.last_data_offset) == (False, -1, -1)
    states.manager.remove_expired(states.now, EXPIRATION_MS)
    assert PRODUCER in states.manager.entries


def test_expired_producers_are_removed_on_reload(states: States) -> None:
    """testRemoveExpiredPidsOnReload"""
    states.append(0, 0, timestamp=0)
    states.append(1, 1, timestamp=1)
    states.snapshot()
    recovered = states.reloaded(now=70_000)
    recovered.append(2, 2, timestamp=70_001)
    assert [entry.last_sequence for entry in recovered.manager.entries.values()] == [2]
    assert recovered.manager.map_end_offset == 3


def test_replica_accepts_unknown_producers(states: States) -> None:
    """testAcceptAppendWithoutProducerStateOnReplica"""
    states.append(0, 0, timestamp=0)
    states.snapshot()
    recovered = states.reloaded(now=70_000)
    assert PRODUCER not in recovered.manager.entries
    recovered.append(2, 2, origin=AppendOrigin.REPLICATION)
    assert (recovered.entry().epoch, recovered.entry().first_sequence, recovered.entry().last_sequence) == (EPOCH, 2, 2)


def test_replica_accepts_gaps(states: States) -> None:
    """testAcceptAppendWithSequenceGapsOnReplica"""
    states.append(0, 0)
    with out_of_order():
        states.append(3, 1)
    assert states.entry().last_sequence == 0
    states.append(3, 1, origin=AppendOrigin.REPLICATION)
    assert states.entry().last_sequence == 3


def test_snapshots_before_an_offset_are_deleted(states: States) -> None:
    """testDeleteSnapshotsBefore"""
    assert states.files is not None
    states.append(0, 0)
    states.append(1, 1)
    states.snapshot()
    states.append(2, 2)
    states.snapshot()
    assert states.files.snapshot_offsets() == [2, 3]
    states.files.remove_before(3)
    assert states.files.snapshot_offsets() == [3]
    states.files.remove_before(4)
    assert states.files.snapshot_offsets() == []


def test_unstable_offset_of_a_snapshot(states: States) -> None:
    """testFirstUnstableOffsetAfterTruncation; a snapshot before the marker has the open transaction."""
    states.append(0, 99, transactional=True)
    assert states.manager.first_unstable_offset() == 99
    states.snapshot()
    states.marker(105)
    states.manager.on_high_watermark_updated(106)
    assert states.manager.first_unstable_offset() is None
    assert states.reloaded().manager.first_unstable_offset() == 99


def test_snapshot_keeps_active_producers(states: States) -> None:
    """testLoadFromSnapshotRetainsNonExpiredProducers"""
    states.append(0, 0, producer=1)
    states.append(0, 1, producer=2)
    states.snapshot()
    found = states.reloaded().manager.entries
    assert {i: (entry.last_sequence, entry.last_data_offset) for i, entry in found.items()} == {1: (0, 0), 2: (0, 1)}


def test_snapshot_at_an_unchanged_offset(states: States, tmp_path: Path) -> None:
    """testSkipSnapshotIfOffsetUnchanged"""
    states.append(0, 0)
    states.snapshot()
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"unchanged")
    states.snapshot()
    assert path.read_bytes() == b"unchanged"


def test_expiration(states: States) -> None:
    """testPidExpirationTimeout"""
    states.append(0, 1, epoch=5)
    states.now += EXPIRATION_MS + 1
    states.manager.remove_expired(states.now, EXPIRATION_MS)
    states.append(1, 2, epoch=5)
    assert [entry.last_sequence for entry in states.manager.entries.values()] == [1]
    assert states.manager.map_end_offset == 3


@VERSIONS
def test_first_unstable_offset(states: States, version: int) -> None:
    """testFirstUnstableOffset"""
    manager, bump = states.manager, 1 if version else 0
    assert manager.first_undecided_offset() is None
    states.append(0, 99, epoch=5, transactional=True)
    states.append(0, 105, producer=2, epoch=5, transactional=True)
    assert (manager.first_undecided_offset(), manager.first_unstable_offset()) == (99, 99)
    states.marker(109, epoch=5 + bump, version=version)
    assert (manager.first_undecided_offset(), manager.first_unstable_offset()) == (105, 99)
    manager.on_high_watermark_updated(100)
    assert manager.first_unstable_offset() == 99
    manager.on_high_watermark_updated(110)
    assert manager.first_unstable_offset() == 105
    states.marker(112, ABORT, producer=2, epoch=5 + bump, version=version)
    assert (manager.first_undecided_offset(), manager.first_unstable_offset()) == (None, 105)
    manager.on_high_watermark_updated(113)
    assert manager.first_unstable_offset() is None


def test_open_transactions_do_not_expire(states: States) -> None:
    """testProducersWithOngoingTransactionsDontExpire"""
    states.append(0, 99, epoch=5, transactional=True)
    states.manager.remove_expired(states.now + EXPIRATION_MS + 1, EXPIRATION_MS)
    assert PRODUCER in states.manager.entries
    assert states.manager.first_undecided_offset() == 99


def test_sequences_of_coordinators_are_not_checked(states: States) -> None:
    """testSequenceNotValidatedForGroupMetadataTopic"""
    states.append(-1, 99, transactional=True, origin=AppendOrigin.COORDINATOR)
    states.append(-1, 100, transactional=True, origin=AppendOrigin.COORDINATOR)
    assert states.entry().last_data_offset == 100


@VERSIONS
def test_old_epoch_of_a_marker(states: States, version: int) -> None:
    """testOldEpochForControlRecord"""
    states.append(0, 99, epoch=5, transactional=True)
    with stale_epoch():
        states.marker(100, epoch=3, version=version)
    if version:
        with stale_epoch():
            states.marker(100, epoch=5, version=version)
    else:
        assert states.marker(100, epoch=5, version=version) is not None


@VERSIONS
def test_coordinator_fencing(states: States, version: int) -> None:
    """testCoordinatorFencing"""
    bump = 1 if version else 0
    states.append(0, 99, epoch=5, transactional=True)
    states.marker(100, epoch=5 + bump, coordinator_epoch=1, version=version)
    assert states.entry().coordinator_epoch == 1
    states.marker(101, epoch=5 + 2 * bump, coordinator_epoch=1, version=version)
    states.marker(102, epoch=5 + 3 * bump, coordinator_epoch=2, version=version)
    with Refused("TRANSACTION_COORDINATOR_FENCED"):
        states.marker(103, epoch=5 + 4 * bump, coordinator_epoch=1, version=version)


@VERSIONS
def test_coordinator_fencing_after_a_reload(states: States, version: int) -> None:
    """testCoordinatorFencedAfterReload"""
    bump = 1 if version else 0
    states.append(0, 99, transactional=True)
    states.marker(100, epoch=EPOCH + bump, coordinator_epoch=1, version=version)
    states.snapshot()
    with Refused("TRANSACTION_COORDINATOR_FENCED"):
        states.reloaded().marker(101, epoch=EPOCH + 2 * bump, coordinator_epoch=0, version=version)


@pytest.mark.parametrize(
    "case", ["testLoadFromEmptySnapshotFile", "testLoadFromTruncatedSnapshotFile", "testLoadFromCorruptSnapshotFile"]
)
def test_corrupt_snapshots_are_removed(states: States, tmp_path: Path, case: str) -> None:
    states.append(0, 0)
    states.snapshot()
    path = tmp_path / "00000000000000000001.snapshot"
    data = path.read_bytes()
    damaged = {"testLoadFromEmptySnapshotFile": b"", "testLoadFromTruncatedSnapshotFile": data[: len(data) // 2]}
    path.write_bytes(damaged.get(case, bytes(37) + data[37:]))
    with pytest.raises(CorruptSnapshot):
        read_snapshot(path.read_bytes())
    assert states.files is not None
    states.files.load(states.manager, 1)
    assert dict(states.manager.entries) == {}
    assert not path.exists()


def test_stray_snapshots(states: States, tmp_path: Path) -> None:
    """testRemoveStraySnapshotsKeepCleanShutdownSnapshot, testRemoveAllStraySnapshots"""
    assert states.files is not None
    for offset in (2, 5, 42):
        (tmp_path / f"{offset:020}.snapshot").touch()
    states.files.reset([5], 42, ())
    assert states.files.snapshot_offsets() == [5, 42]
    states.files.reset([42], 42, ())
    assert states.files.snapshot_offsets() == [42]


def test_verification_entries_are_reused(states: States) -> None:
    """testEntryForVerification"""
    verifications = states.manager.verifications
    guard = verifications.get_or_create(PRODUCER, 0, EPOCH, states.now).guard
    assert verifications.get_or_create(PRODUCER, 0, EPOCH, states.now).guard == guard
    assert verifications.matches(PRODUCER, guard)
    states.append(0, 0, transactional=True)
    verifications.remove(PRODUCER)
    assert verifications.get(PRODUCER) is None


def test_sequence_and_epoch_of_a_verification(states: States) -> None:
    """testSequenceAndEpochInVerificationEntry"""
    verifications = states.manager.verifications
    found = []
    for sequence, epoch in ((1, 0), (0, 0), (2, 1), (0, 0)):
        entry = verifications.get_or_create(PRODUCER, sequence, epoch, states.now)
        found.append((entry.guard, entry.lowest_sequence, entry.epoch))
    assert found == [(1, 1, 0), (1, 0, 0), (1, 2, 1), (1, 2, 1)]


def test_sequence_above_the_verified_one(states: States) -> None:
    """testThrowOutOfOrderSequenceWithVerificationSequenceCheck; also with the verification switched off."""
    manager = states.manager
    entry = manager.verifications.get_or_create(PRODUCER, 0, EPOCH, states.now)
    batch = DataBatch(PRODUCER, EPOCH, 4, 0, 0, states.now, True)
    for enabled in (True, False):
        with out_of_order():
            check_client_batch(manager, batch, entry.guard, verification_enabled=enabled)
    assert manager.verifications.get(PRODUCER) is entry


def test_expiration_of_a_verification(states: States) -> None:
    """testVerificationStateEntryExpiration"""
    verifications = states.manager.verifications
    verifications.get_or_create(PRODUCER, 0, EPOCH, states.now)
    states.manager.remove_expired(states.now + EXPIRATION_MS // 2, EXPIRATION_MS)
    assert verifications.get(PRODUCER) is not None
    states.manager.remove_expired(states.now + EXPIRATION_MS + 1, EXPIRATION_MS)
    assert verifications.get(PRODUCER) is None


def test_repeated_marker_of_version_2(states: States) -> None:
    """testIdempotentTransactionMarkerRetryTV2"""
    states.append(0, 99, transactional=True)
    for offset in (100, 101):
        states.marker(offset, epoch=EPOCH + 1, version=2)
        assert (states.entry().epoch, states.entry().in_transaction) == (EPOCH + 1, False)


def test_version_2_starts_at_sequence_0(states: States) -> None:
    """testRejectNonZeroSequenceForTransactionsV2WithEmptyState"""
    entry = states.manager.verifications.get_or_create(PRODUCER, 0, EPOCH, states.now, supports_epoch_bump=True)
    append = ProducerAppend(ProducerStateEntry(PRODUCER), AppendOrigin.CLIENT, NEWEST, entry)
    with out_of_order():
        append.append_data(DataBatch(PRODUCER, EPOCH, 5, 0, 0, states.now, False))
    append.append_data(DataBatch(PRODUCER, EPOCH, 0, 0, 0, states.now, False))


def test_version_1_starts_anywhere(states: States) -> None:
    """testAllowNonZeroSequenceForTransactionsV1WithEmptyState"""
    entry = states.manager.verifications.get_or_create(PRODUCER, 5, EPOCH, states.now)
    append = ProducerAppend(ProducerStateEntry(PRODUCER), AppendOrigin.CLIENT, NEWEST, entry)
    append.append_data(DataBatch(PRODUCER, EPOCH, 5, 0, 0, states.now, False))
    assert append.entry.last_sequence == 5


def test_bumped_epoch_starts_at_sequence_0(states: States) -> None:
    """testRejectNonZeroSequenceForDirectEpochBump"""
    for sequence in range(3):
        states.append(sequence, sequence)
    with out_of_order():
        states.append(5, 3, epoch=1)
    states.append(0, 3, epoch=1)


def test_last_stable_offset_of_completed_transactions(states: States) -> None:
    """testLastStableOffsetCompletedTxn"""
    manager, start = states.manager, 992_342
    for number, first in enumerate((start, start + 25, start + 57)):
        states.append(0, first, producer=number, transactional=True)
    first_last, third_last, second_last = start + 72, start + 92, start + 170
    for producer, first, last, stable, unstable in (
        (0, start, first_last, start + 25, start + 25),
        (2, start + 57, third_last, start + 25, start + 25),
        (1, start + 25, second_last, second_last + 1, None),
    ):
        completed = CompletedTransaction(producer, first, last, False)
        assert manager.last_stable_offset(completed) == stable
        manager.complete(completed)
        manager.on_high_watermark_updated(last + 1)
        assert manager.first_unstable_offset() == unstable


def test_empty_transactions_are_skipped(states: States) -> None:
    """testSkipEmptyTransactions"""
    manager = states.manager
    states.append(0, 16, count=5, transactional=True)
    manager.on_high_watermark_updated(21)
    assert manager.first_unstable_offset() == 16
    append = manager.prepare_update(PRODUCER, AppendOrigin.COORDINATOR)

    def end(offset: int, kind: object) -> CompletedTransaction | None:
        return append.append_marker(Marker(PRODUCER, EPOCH, ABORT if kind is ABORT else COMMIT, 27, offset, states.now))

    first = end(21, COMMIT)
    assert first == CompletedTransaction(PRODUCER, 16, 21, False)
    assert (end(22, COMMIT), end(23, ABORT)) == (None, None)
    append.append_data(DataBatch(PRODUCER, EPOCH, 5, 24, 27, states.now, True))
    second = end(28, ABORT)
    assert second == CompletedTransaction(PRODUCER, 24, 28, True)
    assert end(29, ABORT) is None
    append.append_data(DataBatch(PRODUCER, EPOCH, 9, 30, 31, states.now, True))
    assert append.started == [24, 30]
    manager.update(append, (first, second))
    manager.on_high_watermark_updated(32)
    assert manager.first_unstable_offset() == 30


def test_snapshot_round_trip() -> None:
    """testReadWriteSnapshot"""
    entries = [
        ProducerStateEntry(1, 2, 3, -1, 100, (BatchMetadata(1, 2, 3, -1),)),
        ProducerStateEntry(11, 12, 13, 123_456),
    ]
    assert read_snapshot(write_snapshot(entries)) == entries


def test_truncation_of_all_states(states: States) -> None:
    """testTruncateFullyAndStartAt"""
    assert states.files is not None
    states.append(0, 0)
    states.append(1, 1)
    states.snapshot()
    states.files.remove_before(1 << 62)
    states.manager.start_at(0)
    assert (dict(states.manager.entries), states.files.snapshot_offsets()) == ({}, [])
    states.append(0, 0)
    states.snapshot()
    assert states.files.snapshot_offsets() == [1]


def test_snapshots_are_found_in_the_folder(states: States, tmp_path: Path) -> None:
    """testReloadSnapshots"""
    assert states.files is not None
    states.append(0, 0)
    states.snapshot()
    data = (tmp_path / f"{1:020}.snapshot").read_bytes()
    (tmp_path / f"{3:020}.snapshot").write_bytes(data)
    assert states.files.snapshot_offsets() == [1, 3]


def test_control_batch_without_records(states: States) -> None:
    """testAppendEmptyControlBatch; here it leaves no entry, which would expire immediately."""
    batch = write_batch(
        [], base_offset=15, last_offset=15, producer_id=23_423, producer_epoch=0, transactional=True, control=True
    )
    assert replay_batch(states.manager, memoryview(batch)) is None
    assert (dict(states.manager.entries), states.manager.first_unstable_offset()) == ({}, None)
