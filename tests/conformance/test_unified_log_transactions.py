"""The cases of Kafka's `UnifiedLogTest` (4.3) about producers and transactions; each test names the case it mirrors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from data_partitions import ABORT, COMMIT, EVERYTHING, EXPIRATION_MS, NOW_MS, OnDisk

from coordinator_core.producers.aborted_transactions import AbortedTransaction
from coordinator_core.producers.append import ProducerRejected
from coordinator_core.producers.leader_checks import start_verification
from coordinator_core.producers.rules import ProducerError
from coordinator_core.producers.verification import NO_GUARD
from coordinator_core.segment_log.errors import PartitionFailed
from coordinator_core.segment_log.topic_config import TopicConfig

VERSIONS = pytest.mark.parametrize("version", [0, 2])
#: Each append gets a segment of its own.
ONE_BATCH = "14"


@pytest.fixture
def log(tmp_path: Path) -> OnDisk:
    return OnDisk(tmp_path)


def refusal(act: Callable[..., object], *arguments: Any, **fields: Any) -> str:
    with pytest.raises(ProducerRejected) as rejected:
        act(*arguments, **fields)
    return rejected.value.error.name


def test_duplicates(log: OnDisk) -> None:
    """testDuplicateAppends"""
    bases = [log.append(b"a", b"b", producer=1, sequence=2 * number).base_offset for number in range(6)]
    end = log.at.log.end_offset
    for number, base in list(enumerate(bases))[1:]:
        repeated = log.append(b"a", b"b", producer=1, sequence=2 * number)
        assert (repeated.base_offset, repeated.is_duplicate) == (base, True)
    for sequence, count in ((0, 2), (10, 1), (9, 2), (11, 1)):
        assert refusal(log.append, *[b"a"] * count, producer=1, sequence=sequence) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.at.log.end_offset == end


def test_old_epoch(log: OnDisk) -> None:
    """testOldProducerEpoch"""
    log.append(producer=1, epoch=5, sequence=0)
    assert refusal(log.append, producer=1, epoch=4, sequence=0) == "INVALID_PRODUCER_EPOCH"


def test_active_producers(log: OnDisk) -> None:
    """testActiveProducers"""
    log.append(producer=1, epoch=5, sequence=0)
    log.append(producer=2, epoch=5, sequence=0, transactional=True)
    log.marker(3, epoch=7, coordinator_epoch=11)
    found = log.at.producers.entries
    assert {i: (e.epoch, e.last_sequence, e.coordinator_epoch, e.current_txn_first_offset) for i, e in found.items()} == {
        1: (5, 0, -1, -1),
        2: (5, 0, -1, 1),
        3: (7, -1, 11, -1),
    }


def test_expiration(log: OnDisk) -> None:
    """testPeriodicProducerIdExpiration"""
    log.append(producer=1, sequence=0)
    log.at.producers.remove_expired(NOW_MS + EXPIRATION_MS - 1, EXPIRATION_MS)
    assert 1 in log.at.producers.entries
    log.at.producers.remove_expired(NOW_MS + EXPIRATION_MS, EXPIRATION_MS)
    assert 1 not in log.at.producers.entries


def test_reads_up_to_the_last_stable_offset(log: OnDisk) -> None:
    """testFetchUpToLastStableOffset"""
    log.append(b"plain")
    log.append(producer=1, sequence=0, transactional=True)
    log.append(b"plain")
    log.append(producer=2, sequence=0, transactional=True)
    assert log.at.last_stable_offset == 1
    assert log.offsets(committed=True) == [0]
    log.marker(2, ABORT)
    assert log.at.last_stable_offset == 1
    log.marker(1)
    assert log.at.last_stable_offset == log.at.high_watermark == 6
    assert log.offsets(committed=True) == [0, 1, 2]
    assert log.offsets(committed=False) == [0, 1, 2, 3]


def test_unstable_offset_without_transactions(log: OnDisk) -> None:
    """testFirstUnstableOffsetNoTransactionalData"""
    log.append()
    assert log.at.producers.first_unstable_offset() is None


def test_unstable_offset_until_the_marker_is_visible(log: OnDisk) -> None:
    """testFirstUnstableOffsetWithTransactionalData"""
    log.append(b"a", b"b", producer=1, sequence=0, transactional=True)
    assert log.at.producers.first_unstable_offset() == 0
    log.append(b"c", producer=1, sequence=2, transactional=True)
    assert log.at.producers.first_unstable_offset() == 0
    marker = log.marker(1)
    assert log.at.producers.first_unstable_offset() is None
    assert log.at.last_stable_offset == marker + 1


@pytest.mark.parametrize("restart", ["none", "kill", "reopen"])
def test_index_of_aborted_transactions(log: OnDisk, restart: str) -> None:
    """testTransactionIndexUpdated; after a restart, testTransactionIndexUpdatedThroughReplication: the log alone is enough."""
    log.append(b"1", b"2", b"3", b"4", b"5", producer=1, sequence=0, transactional=True)
    log.append(b"1", b"2", b"3", producer=2, sequence=0, transactional=True)
    log.append(b"plain")
    log.append(b"1", b"2", producer=3, sequence=0, transactional=True)
    log.marker(1, ABORT)
    log.marker(2)
    log.append(b"3", producer=3, sequence=2, transactional=True)
    log.marker(3, ABORT)
    if restart != "none":
        getattr(log, restart)()
    expected = [AbortedTransaction(1, 0, 11, 5), AbortedTransaction(3, 9, 14, 15)]
    assert list(log.at.aborted_transactions) == expected
    assert log.names(".txnindex") == [0]
    assert log.offsets(committed=True) == [5, 6, 7, 8]


def test_empty_abort_has_no_row(log: OnDisk) -> None:
    """testFullTransactionIndexRecovery covers more; here: a marker without data leaves no row, also after a restart."""
    log.marker(1, ABORT)
    assert list(log.at.aborted_transactions) == []
    log.kill()
    assert list(log.at.aborted_transactions) == []


@pytest.mark.parametrize("case", ["testLastStableOffsetDoesNotExceedLogStartOffsetMidSegment"])
def test_stable_offset_and_deleted_records(log: OnDisk, case: str) -> None:  # noqa: ARG001 - the name of the case
    log.append(b"1", b"2", b"3", producer=1, sequence=0, transactional=True)
    log.append(b"plain")
    assert log.at.last_stable_offset == 0
    log.at.delete_records(2)
    assert log.at.last_stable_offset == log.at.log_start_offset == 2


def test_stable_offset_and_deleted_segments(tmp_path: Path) -> None:
    """testLastStableOffsetDoesNotExceedLogStartOffsetAfterSegmentDeletion"""
    log = OnDisk(tmp_path, segment_bytes=ONE_BATCH)
    for sequence in range(3):
        log.append(producer=1, sequence=sequence, transactional=True)
    log.at.delete_records(2)
    assert log.at.remove_old_segments(log.now) == 2
    assert log.at.last_stable_offset == log.at.log_start_offset == 2
    assert log.names(".log") == [2]


def test_stable_offset_of_several_producers(log: OnDisk) -> None:
    """testLastStableOffsetWithMixedProducerData"""
    log.append(producer=137, epoch=5, sequence=0, transactional=True)
    log.append(producer=983, epoch=5, sequence=0, transactional=True)
    assert log.at.last_stable_offset == 0
    log.marker(137, ABORT, epoch=5)
    assert log.at.last_stable_offset == 1
    log.marker(983, epoch=5)
    assert log.at.last_stable_offset == 4


def test_aborted_transaction_in_several_segments(tmp_path: Path) -> None:
    """testAbortedTransactionSpanningMultipleSegments"""
    log = OnDisk(tmp_path, segment_bytes=ONE_BATCH)
    for sequence in range(4):
        log.append(producer=1, sequence=sequence, transactional=True)
    marker = log.marker(1, ABORT)
    assert log.names(".txnindex") == [marker]
    assert log.at.aborted(0, 1) == [AbortedTransaction(1, 0, 4, 5)]
    assert log.offsets(committed=True) == []


def test_index_that_cannot_be_written(log: OnDisk, tmp_path: Path) -> None:
    """testAppendToTransactionIndexFailure"""
    log.append(producer=1, sequence=0, transactional=True)
    (tmp_path / "orders-0" / f"{0:020}.txnindex").mkdir()
    with pytest.raises(PartitionFailed, match="index of aborted transactions"):
        log.marker(1, ABORT)
    with pytest.raises(PartitionFailed):
        log.append(b"later")
    (tmp_path / "orders-0" / f"{0:020}.txnindex").rmdir()
    log.kill()
    assert list(log.at.aborted_transactions) == [AbortedTransaction(1, 0, 1, 2)]
    log.append(b"later")


@pytest.mark.parametrize(
    "data", [True, False], ids=["testZombieCoordinatorFenced", "testZombieCoordinatorFencedEmptyTransaction"]
)
def test_old_coordinator_is_fenced(log: OnDisk, data: bool) -> None:
    """testZombieCoordinatorFenced, testZombieCoordinatorFencedEmptyTransaction"""
    if data:
        log.append(producer=1, sequence=0, transactional=True)
    log.marker(1, ABORT, coordinator_epoch=1)
    if data:
        log.append(producer=1, sequence=1, transactional=True)
    log.marker(1, COMMIT, coordinator_epoch=2)
    end = log.at.log.end_offset
    assert refusal(log.marker, 1, coordinator_epoch=1) == "TRANSACTION_COORDINATOR_FENCED"
    assert log.at.log.end_offset == end


def test_marker_of_a_fenced_producer(log: OnDisk) -> None:
    """testEndTxnWithFencedProducerEpoch"""
    log.marker(1, ABORT, epoch=5, coordinator_epoch=1)
    assert refusal(log.marker, 1, ABORT, epoch=4, coordinator_epoch=1) == "INVALID_PRODUCER_EPOCH"


def test_marker_of_version_2_with_a_bumped_epoch(log: OnDisk) -> None:
    """testTV2MarkerWithBumpedEpochSucceeds"""
    log.append(producer=1, epoch=5, sequence=0, transactional=True)
    log.marker(1, epoch=6, version=2)
    assert log.at.producers.entry(1).epoch == 6
    log.kill()
    assert log.at.producers.entry(1).epoch == 6


def test_markers_are_replayed_without_a_version(log: OnDisk) -> None:
    """testReplicationWithTVUnknownAllowed"""
    log.append(producer=1, epoch=5, sequence=0, transactional=True)
    log.marker(1, epoch=5)
    log.kill()
    assert not log.at.producers.entry(1).in_transaction


@VERSIONS
def test_guard_of_a_transaction(log: OnDisk, version: int) -> None:
    """testTransactionIsOngoingAndVerificationGuardTV1, testTransactionIsOngoingAndVerificationGuardTV2"""
    states, bumps = log.at.producers, version == 2

    def guard(sequence: int, epoch: int) -> int:
        return start_verification(states, 1, sequence, epoch, log.now, supports_epoch_bump=bumps)

    first = guard(0, 5)
    assert first != NO_GUARD
    assert not states.has_ongoing_transaction(1, 5)
    # a batch outside of a transaction keeps the guard
    log.append(producer=1, epoch=5, sequence=0)
    assert states.verifications.matches(1, first)
    states.verifications.remove(1)
    first = guard(1, 5)
    assert guard(1, 5) == first
    log.append(producer=1, epoch=5, sequence=1, transactional=True, verification_enabled=True, guard=first)
    assert states.has_ongoing_transaction(1, 5)
    assert states.verifications.get(1) is None
    assert guard(2, 5) == NO_GUARD
    log.append(producer=1, epoch=5, sequence=2, transactional=True, verification_enabled=True)
    log.marker(1, epoch=6 if bumps else 5, version=version)
    assert not states.has_ongoing_transaction(1, 5)
    assert guard(0, 6 if bumps else 5) not in (NO_GUARD, first)


def test_empty_transaction_ends_the_verification(log: OnDisk) -> None:
    """testEmptyTransactionStillClearsVerificationGuard"""
    states = log.at.producers
    start_verification(states, 1, 0, 0, log.now, supports_epoch_bump=False)
    log.marker(1)
    assert states.verifications.get(1) is None


def test_marker_of_the_previous_transaction_keeps_the_verification(log: OnDisk) -> None:
    """testNextTransactionVerificationGuardNotCleared"""
    states = log.at.producers
    log.append(producer=1, epoch=0, sequence=0, transactional=True)
    states.verifications.remove(1)
    states.verifications.get_or_create(1, 0, 1, log.now, supports_epoch_bump=True)
    log.marker(1, epoch=1, version=2)
    assert states.verifications.get(1) is not None


def test_switched_off_verification(log: OnDisk) -> None:
    """testDisabledVerificationClearsVerificationGuard"""
    states = log.at.producers
    start_verification(states, 1, 0, 0, log.now, supports_epoch_bump=False)
    log.append(producer=1, sequence=0, transactional=True, verification_enabled=False)
    assert states.verifications.get(1) is None


@pytest.mark.parametrize("guard", [NO_GUARD, 77])
def test_transactional_batch_without_verification(log: OnDisk, guard: int) -> None:
    """testEnablingVerificationWhenRequestIsAtLogLayer"""
    arguments = {"producer": 1, "sequence": 0, "transactional": True, "verification_enabled": True, "guard": guard}
    assert refusal(log.append, **arguments) == "INVALID_TXN_STATE"
    assert log.at.log.end_offset == 0


def test_unknown_producer_starts_anywhere(log: OnDisk) -> None:
    """testAllowNonZeroSequenceOnFirstAppendNonZeroEpoch"""
    log.append(producer=1, epoch=3, sequence=3)
    assert log.at.producers.entry(1).last_sequence == 3


@VERSIONS
def test_stale_epoch_before_the_verification(log: OnDisk, version: int) -> None:
    """testStaleProducerEpochReturnsRecoverableErrorForTV1Clients, testStaleProducerEpochReturnsRecoverableErrorForTV2Clients"""
    log.append(producer=1, epoch=5, sequence=0, transactional=True)
    log.marker(1, epoch=5 + (version == 2), version=version)
    fields = {"producer": 1, "epoch": 4, "sequence": 0, "transactional": True, "verification_enabled": True}
    assert refusal(log.append, **fields) == ProducerError.INVALID_PRODUCER_EPOCH.name


def test_state_after_compaction(tmp_path: Path) -> None:
    """testRebuildProducerIdMapWithCompactedData, testUpdateProducerIdMapWithCompactedData,
    testRebuildProducerStateWithEmptyCompactedBatch"""
    log = OnDisk(tmp_path, segment_bytes=ONE_BATCH, cleanup_policy="compact")
    for sequence in range(3):
        log.append(producer=1, sequence=sequence)
    log.append(b"last", producer=2, sequence=0)
    log.at.log.roll()
    log.at.log.clean(log.now)
    log.kill()
    assert {i: entry.last_sequence for i, entry in log.at.producers.entries.items()} == {1: 2, 2: 0}
    log.append(producer=1, sequence=3)


def test_rebuilt_transactions(log: OnDisk) -> None:
    """testRebuildTransactionalState"""
    log.append(producer=1, sequence=0, transactional=True)
    log.marker(1, ABORT, coordinator_epoch=4)
    log.kill()
    entry = log.at.producers.entry(1)
    assert (entry.in_transaction, entry.coordinator_epoch, log.at.producers.first_unstable_offset()) == (False, 4, None)


def test_snapshots_of_segments(tmp_path: Path) -> None:
    """testProducerSnapshotAfterSegmentRollOnAppend, testTakeSnapshotOnRollAndDeleteSnapshotOnRecoveryPointCheckpoint;
    a snapshot is kept as long as its segment."""
    log = OnDisk(tmp_path, segment_bytes=ONE_BATCH)
    for sequence in range(3):
        log.append(producer=1, sequence=sequence)
    assert log.names(".snapshot") == [1, 2]
    log.reopen()
    assert log.names(".snapshot") == [1, 2, 3]


def test_snapshots_of_deleted_segments(tmp_path: Path) -> None:
    """testRetentionDeletesProducerStateSnapshots, testLogStartOffsetMovementDeletesSnapshots,
    testDeleteSnapshotsOnIncrementLogStartOffset"""
    log = OnDisk(tmp_path, segment_bytes=ONE_BATCH, retention_ms="1000")
    for sequence in range(3):
        log.append(producer=sequence, sequence=0, timestamp=NOW_MS + 1000 * sequence)
    assert log.at.remove_old_segments(NOW_MS + 2500) == 2
    assert (log.names(".log"), log.names(".snapshot")) == ([2], [2])
    log.at.delete_records(3)
    log.at.remove_old_segments(NOW_MS + 2500)
    assert (log.names(".log"), log.names(".snapshot"), log.at.log_start_offset) == ([3], [3], 3)


def test_producers_of_deleted_segments(tmp_path: Path) -> None:
    """testProducerIdExpirationOnSegmentDeletion; their snapshot holds them after a restart, too."""
    log = OnDisk(tmp_path, segment_bytes=ONE_BATCH, retention_ms="1000")
    for number in range(3):
        log.append(producer=number, sequence=0, timestamp=NOW_MS + 1000 * number)
    log.at.remove_old_segments(NOW_MS + 2500)
    assert set(log.at.producers.entries) == {0, 1, 2}
    log.kill()
    assert set(log.at.producers.entries) == {0, 1, 2}


def test_snapshots_after_the_end(tmp_path: Path) -> None:
    """testLoadingLogDeletesProducerStateSnapshotsPastLogEndOffset"""
    log = OnDisk(tmp_path)
    log.append(producer=1, sequence=0)
    for offset in (1, 2, 50):
        (tmp_path / "orders-0" / f"{offset:020}.snapshot").touch()
    log.kill()
    assert log.names(".snapshot") == [1]


def test_leader_epochs(log: OnDisk) -> None:
    """testFetchOffsetByTimestampIncludesLeaderEpoch, shouldApplyEpochToMessageOnAppendIfLeader,
    shouldUpdateOffsetForLeaderEpochsWhenDeletingSegments"""
    log.append(timestamp=NOW_MS + 1)
    log.kill()
    log.append(timestamp=NOW_MS + 9)
    assert log.at.log.leader_epoch == 1
    found = [log.at.find_timestamp(NOW_MS + after, EVERYTHING) for after in (0, 2, 10)]
    assert [(each.timestamp, each.offset, each.leader_epoch) for each in found] == [
        (NOW_MS + 1, 0, 0),
        (NOW_MS + 9, 1, 1),
        (-1, -1, -1),
    ]
    assert log.at.largest_timestamp().offset == 1
    assert [log.at.end_of_epoch(epoch) for epoch in (-1, 0, 1, 2)] == [(-1, -1), (0, 1), (1, 2), (-1, -1)]


def test_offset_of_the_states_without_producers(log: OnDisk) -> None:
    """testProducerIdMapOffsetUpdatedForNonIdempotentData"""
    log.append(b"plain")
    log.at.log.roll()
    assert log.names(".snapshot") == [1]


def test_snapshots_of_cleaned_segments(tmp_path: Path) -> None:
    """testCompactionDeletesProducerStateSnapshots; those of merged segments are removed at the next start."""
    log = OnDisk(tmp_path, segment_bytes=ONE_BATCH, cleanup_policy="compact")
    for sequence in range(3):
        log.append(producer=1, sequence=sequence)
    log.at.configure(TopicConfig({"cleanup.policy": "compact"}))
    log.at.log.roll()
    log.at.log.clean(log.now)
    log.kill()
    assert log.names(".log") == [0, 3]
    assert log.names(".snapshot") == [3]
    assert log.at.producers.entry(1).last_sequence == 2
