"""Data records: what a consumer with read_committed returns of a log with transactions."""

from pathlib import Path

import pytest
from segment_builder import LogBuilder

from coordinator_core.log.columns import parse_columns
from coordinator_core.log.data_records import data_offsets
from coordinator_core.sources.record_counts import DataRecords

PAIR = (b"k", b"v")


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    """Producer 1 aborts 1–2 and commits 6; producer 2 aborts 4; 0 and 5 have no transaction. Markers: 3, 7, 8."""
    builder = LogBuilder(tmp_path)
    builder.append(0, [PAIR])
    builder.append(0, [PAIR, PAIR], producer_id=1, transactional=True)
    builder.marker(0, 1, commit=False)
    builder.append(0, [PAIR], producer_id=2, transactional=True)
    builder.append(0, [PAIR])
    builder.append(0, [PAIR], producer_id=1, transactional=True)
    builder.marker(0, 1)
    builder.marker(0, 2, commit=False)
    return builder


#: Producer id, first offset and last offset of the aborted transactions.
ABORTED = [(1, 1, 3), (2, 4, 8)]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 9, [0, 5, 6]), (2, 9, [5, 6]), (4, 9, [5, 6]), (0, 3, [0]), (7, 9, []), (3, 5, [])],
)
def test_data_offsets(log: LogBuilder, start: int, end: int, expected: list[int]) -> None:
    columns = parse_columns(log.segment(0).read_bytes(), start, end)
    # brokers leave out the transactions that end before the requested offset
    aborted = [(producer, first) for producer, first, last in ABORTED if last >= start]
    assert data_offsets(columns, aborted).tolist() == expected


def test_records_left_to_a_group(log: LogBuilder) -> None:
    records = DataRecords(0, 9, data_offsets(parse_columns(log.segment(0).read_bytes()), [(1, 1), (2, 4)]))
    assert records.left_to(0) == (0, 9, 3, 0)
    assert records.left_to(1) == (1, 9, 2, 5)
    assert records.left_to(7) == (7, 9, 0, None)
    # an open transaction begins at offset 4
    assert DataRecords(0, 4, records.offsets[:1]).left_to(6) == (6, 6, 0, None)
