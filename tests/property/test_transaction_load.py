"""A load of `__transaction_state` as columns gives the same states as a load record by record."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_strategies import transaction_records

from coordinator_core.codec import decode_transaction, encode_transaction
from coordinator_core.log.columns import columns_of
from coordinator_core.log.entries import LogRecord
from coordinator_core.reduction.transaction_load import load_transaction_columns
from coordinator_core.state.anomaly import Anomaly
from coordinator_core.state.transaction_cache import TransactionMetadataCache

IDS = [b"\x00\x00\x00\x01a", b"\x00\x00\x00\x01b", b"\x00\x00\x00\x01a trailing", b"\x00\x01\x00\x01a", b"", None]
VALUES = transaction_records().map(lambda record: encode_transaction(record)[1]) | st.just(None) | st.binary(max_size=8)


@st.composite
def logs(draw: st.DrawFn) -> list[LogRecord]:
    rows = draw(st.lists(st.tuples(st.sampled_from(IDS), VALUES, st.sampled_from([False] * 9 + [True])), max_size=20))
    return [
        LogRecord(3, offset, 1000 + offset, key, value, -1, -1, is_control, is_control, offset)
        for offset, (key, value, is_control) in enumerate(rows)
    ]


@pytest.mark.parametrize("era", ["1", "3", "4"])
@given(records=logs(), borders=st.lists(st.integers(0, 20), max_size=3))
def test_loads_are_the_same(era: str, records: Sequence[LogRecord], borders: Sequence[int]) -> None:
    one_by_one, by_columns = TransactionMetadataCache(era), TransactionMetadataCache(era)
    applied = [
        one_by_one.apply(record, None if record.is_control else decode_transaction(record.key, record.value))
        for record in records
    ]
    bounds = [0, *sorted(min(border, len(records)) for border in borders), len(records)]
    pieces = [tuple(records[start:end]) for start, end in pairwise(bounds)]
    found = load_transaction_columns(by_columns, 3, [columns_of(piece, next_offset=99) for piece in pieces])
    assert by_columns.transactions == one_by_one.transactions
    assert list(found) == [each for each in applied if isinstance(each, Anomaly)]
