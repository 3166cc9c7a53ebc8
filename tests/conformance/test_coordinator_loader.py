"""The cases of Kafka's `CoordinatorLoaderImplTest` (3.9) about the result of a load."""

from log_builder import GROUP, Log, member, offsets, pending
from scalar_logs import read_log

from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.record_batch import BatchRecord, end_transaction_marker, write_batch
from coordinator_core.state.anomaly import AnomalyKind


def test_loading() -> None:
    """testLoading: plain and transactional batches, markers of two producers, from the bytes of a log"""
    log = Log()
    keys = [(r.key, r.value) for r in (log.commit(p, 100 + p) for p in range(6))]
    data = b"".join(
        (
            write_batch([BatchRecord(0, 1, *keys[0]), BatchRecord(1, 1, *keys[1])]),
            write_batch([BatchRecord(2, 1, *keys[2])], producer_id=100, producer_epoch=5, transactional=True),
            write_batch([BatchRecord(3, 1, *keys[3])], producer_id=200, producer_epoch=5, transactional=True),
            end_transaction_marker(4, ControlType.COMMIT, producer_id=100, producer_epoch=5, timestamp=1),
            end_transaction_marker(5, ControlType.ABORT, producer_id=200, producer_epoch=5, timestamp=1),
            write_batch([BatchRecord(6, 1, *keys[4])], producer_id=500, producer_epoch=5, transactional=True),
        )
    )
    log.records = [item for item in read_log(data, 0) if isinstance(item, LogRecord)]
    state = log.load("4")
    assert offsets(state) == {0: 100, 1: 101, 2: 102}
    assert pending(state) == {4: {500: 104}}


def test_unknown_record_type_are_ignored() -> None:
    """testUnknownRecordTypeAreIgnored"""
    log = Log()
    log.raw(b"\x00\x12rest", b"\x00\x00")
    log.commit(0, 1)
    state, anomalies = log.load_with_anomalies("4")
    assert ([a.kind for a in anomalies], offsets(state)) == ([AnomalyKind.UNREAD], {0: 1})


def test_deserialization_error_fails_the_loading() -> None:
    """testDeserializationErrorFailsTheLoading: a broker gives the partition up; here the record is reported and the rest loads"""
    log = Log()
    log.commit(0, 1)
    log.raw(b"\x00\x01\x7f", b"\x00\x03")
    log.group([member()])
    state, (anomaly,) = log.load_with_anomalies("4")
    assert (anomaly.kind, anomaly.offset) == (AnomalyKind.UNDECODABLE, 1)
    assert (offsets(state), state.groups()[GROUP].state) == ({0: 1}, "Stable")


def test_load_group_and_offsets_with_corrupted_log() -> None:
    """testLoadGroupAndOffsetsWithCorruptedLog"""
    assert list(read_log(b"", 0, start_offset=0, end_offset=100)) == []
    assert Log().load("4").groups() == {}
