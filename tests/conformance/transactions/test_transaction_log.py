"""Kafka's TransactionLogTest and TransactionCoordinatorRecordSerdeTest: records, and the ids that they load to."""

from collections.abc import Iterable

import pytest
from transaction_harness import ID, PARTITIONS, PRODUCER_ID, START_MS, metadata

from coordinator_core.codec import (
    Malformed,
    TransactionRecord,
    UnknownType,
    UnknownVersion,
    decode_transaction,
    encode_transaction,
)
from coordinator_core.codec.messages.transactions import PartitionsSchema, TransactionLogKey, TransactionLogValue
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.anomaly import Anomaly, AnomalyKind
from coordinator_core.state.transaction_cache import TransactionMetadataCache
from coordinator_core.state.transaction_metadata import (
    TransactionMetadata,
    loaded_metadata,
    transaction_record,
    transaction_tombstone,
)
from coordinator_core.state.transaction_state import EMPTY, ONGOING, PREPARE_COMMIT, TransactionState
from coordinator_core.transaction_coordinator.behaviour import TRANSACTION_BEHAVIOURS

KEY = encode_transaction(transaction_tombstone(ID))[0]


def load(era: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> tuple[TransactionMetadataCache, list[Anomaly]]:
    """The ids after these records, and the anomalies."""
    cache = TransactionMetadataCache(era)
    found = []
    for offset, (key, value) in enumerate(records):
        applied = cache.apply(LogRecord(3, offset, START_MS, key, value), decode_transaction(key, value))
        if isinstance(applied, Anomaly):
            found.append(applied)
    return cache, found


def written(now: TransactionMetadata, version: int = 1) -> tuple[bytes, bytes | None]:
    return encode_transaction(transaction_record(now, version))


def test_empty_with_partitions() -> None:
    """shouldThrowExceptionWriteInvalidTxn"""
    with pytest.raises(ValueError, match="Empty with 2 partitions"):
        transaction_record(metadata(EMPTY, partitions=PARTITIONS), 0)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("state", TransactionState)
def test_round_trip(state: TransactionState, version: int) -> None:
    """shouldReadWriteMessages testSerializeKey testSerializeValue testDeserialize testDeserializeAllRecordTypes"""
    now = metadata(state, last_producer_epoch=4, previous_producer_id=3, client_transaction_version=2)
    cache, found = load("4", [written(now, version)])
    assert found == []
    assert cache.metadata() == {ID: now.as_logged(version)}
    assert cache.metadata()[ID].partitions == (frozenset() if not now.partitions else PARTITIONS)


def test_producer_ids_of_an_overflow() -> None:
    """shouldRoundTripPreviousAndNextProducerIds"""
    now = metadata(PREPARE_COMMIT, previous_producer_id=100, next_producer_id=201, client_transaction_version=2)
    loaded = load("4", [written(now)])[0].metadata()[ID]
    assert (loaded.previous_producer_id, loaded.next_producer_id) == (100, 201)


def test_no_producer_ids_in_version_0() -> None:
    """shouldNotPersistProducerIdsAtVersion0"""
    now = metadata(PREPARE_COMMIT, previous_producer_id=100, next_producer_id=201)
    loaded = load("4", [written(now, 0)])[0].metadata()[ID]
    assert (loaded.previous_producer_id, loaded.next_producer_id) == (-1, -1)


@pytest.mark.parametrize(
    ("era", "version"),
    [
        pytest.param("3", 0, id="testSerializeTransactionLogValueToHighestNonFlexibleVersion"),
        pytest.param("4", 1, id="testSerializeTransactionLogValueToFlexibleVersion"),
    ],
)
def test_value_versions(era: str, version: int) -> None:
    value = written(metadata(ONGOING), TRANSACTION_BEHAVIOURS[era].value_version)[1]
    assert value is not None
    assert value[:2] == bytes([0, version])


def test_all_fields_of_the_highest_version() -> None:
    """testDeserializeHighestSupportedTransactionLogValue"""
    value = TransactionLogValue(100, 50, 1000, 4, (PartitionsSchema("topic", (0,)),), 500, 501, 99, 101, 2)
    loaded = loaded_metadata(ID, value)
    assert (loaded.producer_id, loaded.producer_epoch, loaded.previous_producer_id, loaded.next_producer_id) == (100, 50, 99, 101)
    assert (loaded.state.label, loaded.timeout_ms, loaded.last_update_ms, loaded.start_ms) == ("CompleteCommit", 1000, 500, 501)
    assert (loaded.partitions, loaded.client_transaction_version) == (frozenset({("topic", 0)}), 2)


def test_unknown_tags() -> None:
    """testDeserializeFutureTransactionLogValue"""
    topic = PartitionsSchema("topic", (0,), unknown_tags=((100, b"123"), (101, b"4")))
    value = TransactionLogValue(1, 2, 3, 1, (topic,), 5, 6, unknown_tags=((100, b"a"), (101, b"bc")))
    key, data = encode_transaction(TransactionRecord(TransactionLogKey(ID), value, 1))
    decoded = decode_transaction(key, data)
    assert isinstance(decoded, TransactionRecord)
    assert decoded.value == value
    assert load("4", [(key, data)])[0].metadata()[ID].partitions == frozenset({("topic", 0)})


@pytest.mark.parametrize(("era", "ends"), [("1", True), ("2", True), ("3", False), ("4", False)])
def test_an_unknown_type(era: str, ends: bool) -> None:
    """testReadReturnsUnknownKeyVersionForInvalidKey testDeserializeWithInvalidRecordType testIgnoreUnknownRecordType"""
    unknown = (b"\x00\x7f", b"x")
    decoded = decode_transaction(*unknown)
    assert decoded == UnknownType(127)
    cache, found = load(era, [unknown, written(metadata(ONGOING), 0)])
    assert [anomaly.kind for anomaly in found] == [AnomalyKind.UNREAD]
    assert list(cache.metadata()) == [ID]
    assert cache.ends_load(decoded) is ends


@pytest.mark.parametrize(("era", "ends"), [("1", True), ("2", True), ("3", True), ("4", False)])
def test_an_unknown_value_version(era: str, ends: bool) -> None:
    """testReadReturnsUnknownValueVersionForInvalidValue"""
    decoded = decode_transaction(KEY, b"\x00\x10xx")
    assert isinstance(decoded, UnknownVersion)
    cache, found = load(era, [written(metadata(EMPTY), 0), (KEY, b"\x00\x10xx")])
    assert [(anomaly.kind, anomaly.offset) for anomaly in found] == [(AnomalyKind.UNREAD, 1)]
    assert cache.metadata() == {ID: metadata(EMPTY)}
    assert cache.ends_load(decoded) is ends


def test_a_version_of_a_later_release() -> None:
    """Beside: brokers before 3.5 know version 0 only."""
    record = written(metadata(EMPTY), 1)
    cache, found = load("2", [record])
    assert ([anomaly.kind for anomaly in found], cache.metadata()) == ([AnomalyKind.UNREAD], {})
    assert cache.ends_load(decode_transaction(*record))


def test_a_tombstone() -> None:
    """shouldReturnTxnTombstoneForNullValue testSerializeNullValue testDeserializeWithTombstoneForValue"""
    assert encode_transaction(transaction_tombstone(ID)) == (KEY, None)
    assert decode_transaction(KEY, None) == transaction_tombstone(ID)
    cache, found = load("4", [written(metadata(ONGOING)), (KEY, None), (KEY, None)])
    assert (cache.metadata(), found) == ({}, [])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(None, b"x", id="null key"),
        pytest.param(b"", b"x", id="empty key"),
        pytest.param(b"\x00\x00\x00\x09ab", None, id="short key"),
        pytest.param(KEY, b"", id="empty value"),
        pytest.param(KEY, b"\x00\x00\x01", id="short value"),
    ],
)
def test_malformed_records(key: bytes | None, value: bytes | None) -> None:
    """testDeserializeWithKeyEmptyBuffer testDeserializeWithValueEmptyBuffer

    testDeserializeWithInvalidKeyBytes testDeserializeWithInvalidValueBytes"""
    decoded = decode_transaction(key, value)
    assert isinstance(decoded, Malformed)
    cache, found = load("4", [(key, value)])
    assert ([anomaly.kind for anomaly in found], cache.metadata()) == ([AnomalyKind.UNDECODABLE], {})
    assert cache.ends_load(decoded)


@pytest.mark.parametrize(
    "value",
    [
        TransactionLogValue(1, 2, 3, 9, (), 5, 6),
        TransactionLogValue(1, 2, 3, 1, None, 5, 6),
        TransactionLogValue(1, 2, 3, 0, None, 5, 6, client_transaction_version=3),
    ],
    ids=["unknown state", "null partitions", "unknown transaction version"],
)
def test_values_that_no_broker_loads(value: TransactionLogValue) -> None:
    """Beside: brokers end the load with an exception, and serve the ids before it."""
    record = TransactionRecord(TransactionLogKey(ID), value, 1)
    cache, found = load("4", [encode_transaction(record)])
    assert ([anomaly.kind for anomaly in found], cache.metadata()) == ([AnomalyKind.UNDECODABLE], {})
    assert cache.ends_load(record)


def test_partitions_of_an_empty_id_are_ignored() -> None:
    """Beside: brokers read them only in other states."""
    value = TransactionLogValue(PRODUCER_ID, 10, 60_000, 0, (PartitionsSchema("topic1", (0, 1)),), START_MS, -1)
    assert loaded_metadata(ID, value) == metadata(EMPTY)


def test_changes_and_positions() -> None:
    """Beside: what a history of transactions needs of each record."""
    cache = TransactionMetadataCache("4")
    (key, value), first = written(metadata(EMPTY)), LogRecord(3, 7, START_MS, KEY, None)
    made = cache.apply(first, decode_transaction(key, value))
    assert not isinstance(made, Anomaly)
    assert (made.transactional_id, made.before, made.after) == (ID, None, cache.transactions[ID])
    assert cache.transactions[ID][1:] == (3, 7, START_MS)
    removed = cache.apply(LogRecord(3, 8, START_MS, KEY, None), transaction_tombstone(ID))
    assert not isinstance(removed, Anomaly)
    assert (removed.before, removed.after) == (made.after, None)


def test_control_records() -> None:
    """Beside: none are expected in this log."""
    applied = TransactionMetadataCache("4").apply(LogRecord(0, 0, 0, b"", b"", is_control=True), None)
    assert isinstance(applied, Anomaly)


@pytest.mark.parametrize("era", ["0.9", "0.10", "5"])
def test_eras_without_transactions(era: str) -> None:
    with pytest.raises(ValueError, match="has no transactions"):
        TransactionMetadataCache(era)
