"""The columnar codec of `__transaction_state` agrees with the scalar one on any bytes."""

from collections.abc import Sequence

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from record_strategies import transaction_records

from coordinator_core.codec import decode_transaction, encode_transaction
from coordinator_core.codec.messages.transactions import TransactionLogValue
from coordinator_core.codec.transaction_columns import OTHER, STATE, TOMBSTONE, TransactionColumns, decode_transactions
from coordinator_core.codec.transactions import TransactionRecord
from coordinator_core.log.columns import columns_of
from coordinator_core.log.entries import LogRecord

Pair = tuple[bytes | None, bytes | None]

_ENCODED = transaction_records().map(encode_transaction)
_HEADER = b"\x00" * 17
_KEY = b"\x00\x00\x00\x01a"


@st.composite
def _changed(draw: st.DrawFn) -> Pair:
    """A record with one changed part of its key or value, cut off or longer."""
    pair = [*draw(_ENCODED)]
    at = draw(st.integers(0, 1))
    data = pair[at] or b""
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, min(len(data), start + 4)))
    rest = draw(st.sampled_from([data[end:], b""]))
    pair[at] = data[:start] + draw(st.binary(max_size=6)) + rest
    return pair[0], pair[1]


def decoded(pairs: Sequence[Pair], versions: int = 2) -> TransactionColumns:
    records = [LogRecord(0, offset, 0, key, value, batch_offset=offset) for offset, (key, value) in enumerate(pairs)]
    columns = columns_of(records, next_offset=len(records))
    slices = (columns.key_start, columns.key_length, columns.value_start, columns.value_length)
    return decode_transactions(columns.buffer, *slices, versions)


def expected_partitions(value: TransactionLogValue) -> list[dict[str, object]]:
    listed = value.transaction_partitions or ()
    topics = sorted({each.topic for each in listed if each.partition_ids})
    return [
        {"topic": topic, "partitions": sorted({n for each in listed if each.topic == topic for n in each.partition_ids})}
        for topic in topics
    ]


@given(pairs=st.lists(_ENCODED | _changed() | st.tuples(st.none() | st.binary(max_size=8), st.none() | st.binary()), max_size=6))
@example([(_KEY, b"\x00\x01" + _HEADER[2:] + b"\x81\x80\x80\x80\x08" + bytes(17))])
@example([(_KEY, b"\x00\x01" + _HEADER[2:] + b"\xff\xff\xff\xff\x0f" + bytes(17))])
@example([(_KEY, b"\x00\x00" + _HEADER[2:] + b"\x80\x00\x00\x00" + bytes(16))])
@example([(_KEY, b"\x00\x01" + _HEADER[2:] + b"\x00" + bytes(16) + b"\x02\x02\x02\x00\x02\x02\x02\x00\x01")])
@example([(_KEY, b"\x00\x01" + _HEADER[2:] + b"\x00" + bytes(16) + b"\x01\x05\x7f")])
def test_columns_have_what_the_scalar_codec_decodes(pairs: list[Pair]) -> None:
    columns = decoded(pairs)
    scalar = [decode_transaction(key, value) for key, value in pairs]
    expected = [
        OTHER if not isinstance(record, TransactionRecord) else TOMBSTONE if record.value is None else STATE for record in scalar
    ]
    assert columns.status.tolist() == expected
    rows = np.flatnonzero(columns.status != OTHER)
    records = [record for record in scalar if isinstance(record, TransactionRecord)]
    assert columns.ids(rows).to_pylist() == [record.key.transactional_id for record in records]
    states = np.flatnonzero(columns.status == STATE)
    partitions = columns.partitions(columns.values[states]).to_pylist()
    versions_and_values = [(record.value_version, record.value) for record in records if record.value is not None]
    for row, listed, (version, value) in zip(columns.values[states], partitions, versions_and_values, strict=True):
        assert row["version"] == version
        assert row["producer_id"] == value.producer_id
        assert row["producer_epoch"] == value.producer_epoch
        assert row["timeout_ms"] == value.transaction_timeout_ms
        assert row["state"] == value.transaction_status
        assert (row["topics"] < 0) == (value.transaction_partitions is None)
        assert row["last_update_ms"] == value.transaction_last_update_timestamp_ms
        assert row["start_ms"] == value.transaction_start_timestamp_ms
        assert row["previous_producer_id"] == value.previous_producer_id
        assert row["next_producer_id"] == value.next_producer_id
        assert row["client_transaction_version"] == value.client_transaction_version
        assert listed == expected_partitions(value)


@given(pair=_ENCODED)
def test_values_of_later_versions_are_left_to_the_scalar_codec(pair: Pair) -> None:
    (status,) = decoded([pair], versions=1).status.tolist()
    assert status == (TOMBSTONE if pair[1] is None else STATE if pair[1][1] == 0 else OTHER)
