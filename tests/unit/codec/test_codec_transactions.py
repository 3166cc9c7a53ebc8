"""Records of `__transaction_state`."""

import pytest
from expecting import expect

from coordinator_core.codec import (
    Malformed,
    TransactionRecord,
    UnknownType,
    UnknownVersion,
    decode_transaction,
    encode_transaction,
)
from coordinator_core.codec.messages.transactions import PartitionsSchema, TransactionLogKey, TransactionLogValue
from coordinator_core.codec.text import transaction_json_form

KEY = bytes.fromhex("0000 0002 7478")
HEAD = "0000000000000007 0001 0000ea60"
TIMES = "0000000000000009 0000000000000008"

CASES = [
    (f"0000 {HEAD} 00 ffffffff {TIMES}", TransactionLogValue(7, 1, 60000, 0, None, 9, 8)),
    (
        f"0000 {HEAD} 01 00000001 0001 74 00000001 00000003 {TIMES}",
        TransactionLogValue(7, 1, 60000, 1, (PartitionsSchema("t", (3,)),), 9, 8),
    ),
    (f"0001 {HEAD} 00 00 {TIMES} 00", TransactionLogValue(7, 1, 60000, 0, None, 9, 8)),
    (
        f"0001 {HEAD} 01 02 02 74 02 00000003 00 {TIMES} 04 00 08 0000000000000006 01 08 0000000000000005 02 02 0002 03 02 0004",
        TransactionLogValue(7, 1, 60000, 1, (PartitionsSchema("t", (3,)),), 9, 8, 6, 5, 2, 4),
    ),
]


@pytest.mark.parametrize(("value", "expected"), CASES)
def test_transactions_of_both_versions(value: str, expected: TransactionLogValue) -> None:
    record = decode_transaction(KEY, bytes.fromhex(value))

    assert record == TransactionRecord(TransactionLogKey("tx"), expected, bytes.fromhex(value)[1])
    assert encode_transaction(record) == (KEY, bytes.fromhex(value))


def test_a_null_value_is_a_tombstone() -> None:
    assert decode_transaction(KEY, None) == TransactionRecord(TransactionLogKey("tx"), None, None)


def test_other_bytes_are_outcomes() -> None:
    assert decode_transaction(b"\x00\x01", None) == UnknownType(1)
    assert decode_transaction(KEY, b"\x00\x02") == UnknownVersion(0, 2, 0, 1)
    assert decode_transaction(KEY, b"\x00\x00") == Malformed(0, "value", 2, "needs 15 bytes, 0 are left")


def test_json_has_the_order_of_the_schema_and_leaves_default_tags_out() -> None:
    key = {"type": 0, "data": {"transactionalId": "tx"}}
    plain, tagged = (
        transaction_json_form(expect(TransactionRecord, decode_transaction(KEY, bytes.fromhex(CASES[index][0]))))
        for index in (2, 3)
    )

    assert plain["key"] == key
    assert list(plain["value"]["data"].items()) == [
        ("producerId", 7),
        ("producerEpoch", 1),
        ("transactionTimeoutMs", 60000),
        ("transactionStatus", 0),
        ("transactionPartitions", None),
        ("transactionLastUpdateTimestampMs", 9),
        ("transactionStartTimestampMs", 8),
    ]
    assert list(tagged["value"]["data"].items()) == [
        ("producerId", 7),
        ("previousProducerId", 6),
        ("nextProducerId", 5),
        ("producerEpoch", 1),
        ("nextProducerEpoch", 4),
        ("transactionTimeoutMs", 60000),
        ("transactionStatus", 1),
        ("transactionPartitions", [{"topic": "t", "partitionIds": [3]}]),
        ("transactionLastUpdateTimestampMs", 9),
        ("transactionStartTimestampMs", 8),
        ("clientTransactionVersion", 2),
    ]
    assert transaction_json_form(expect(TransactionRecord, decode_transaction(KEY, None))) == {"key": key, "value": None}
