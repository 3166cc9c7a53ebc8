"""The cases of Kafka's `TransactionIndexTest` (4.3); each test names the case it mirrors."""

from pathlib import Path

import pytest
from aborted_indexes import CorruptIndex, read_index

from coordinator_core.producers.aborted_transactions import (
    AbortedTransaction,
    AbortedTransactions,
    write_index,
)
from coordinator_core.segment_log.producer_files import ProducerFiles

ROWS = [AbortedTransaction(0, 0, 10, 11), AbortedTransaction(1, 5, 15, 13), AbortedTransaction(2, 18, 35, 25)]
MORE = [*ROWS, AbortedTransaction(3, 32, 50, 40)]


def test_rows_of_an_existing_file(tmp_path: Path) -> None:
    """testPositionSetCorrectlyWhenOpened"""
    files = ProducerFiles(tmp_path)
    for row in ROWS:
        files.append_aborted(row, 0)
    reopened = ProducerFiles(tmp_path)
    reopened.reset([0], 36, ROWS)
    reopened.append_aborted(MORE[-1], 0)
    assert read_index((tmp_path / f"{0:020}.txnindex").read_bytes()) == MORE


def test_rows_before_the_segment() -> None:
    """testSanityCheck"""
    data = write_index(ROWS)
    assert read_index(data, 0) == ROWS
    with pytest.raises(CorruptIndex, match="before the segment's base offset 100"):
        read_index(data, 100)


def test_last_offset_must_increase() -> None:
    """testLastOffsetMustIncrease"""
    rows = AbortedTransactions([AbortedTransaction(1, 5, 15, 13)])
    with pytest.raises(ValueError, match="does not follow"):
        rows.append(AbortedTransaction(0, 0, 15, 11))


def test_last_offset_cannot_decrease() -> None:
    """testLastOffsetCannotDecrease"""
    rows = AbortedTransactions([AbortedTransaction(1, 5, 15, 13)])
    with pytest.raises(ValueError, match="does not follow"):
        rows.append(AbortedTransaction(0, 0, 10, 11))


@pytest.mark.parametrize(
    ("start", "end", "found", "is_complete"),
    [
        (0, 100, MORE, False),
        (0, 32, MORE[:3], True),
        (0, 35, MORE, True),
        (10, 35, MORE, True),
        (11, 35, MORE[1:], True),
        (20, 41, MORE[2:], False),
    ],
)
def test_transactions_of_a_range(start: int, end: int, found: list[AbortedTransaction], is_complete: bool) -> None:
    """testCollectAbortedTransactions"""
    rows = [*ROWS[:2], AbortedTransaction(2, 18, 35, 25), AbortedTransaction(3, 32, 50, 40)]
    collected = AbortedTransactions(rows).collect(start, end)
    assert (collected.rows, collected.is_complete) == (found, is_complete)


def test_truncate() -> None:
    """testTruncate"""
    rows = AbortedTransactions(
        [AbortedTransaction(0, 0, 10, 2), AbortedTransaction(1, 5, 15, 16), AbortedTransaction(2, 10, 20, 21)]
    )
    rows.truncate_to(16)
    assert [row.producer_id for row in rows.rows] == [0, 1]
    rows.truncate_to(11)
    assert [row.producer_id for row in rows.rows] == [0]
    rows.truncate_to(0)
    assert rows.rows == []


def test_row_round_trip() -> None:
    """testAbortedTxnSerde"""
    row = AbortedTransaction(983493, 137, 299, 200)
    assert len(row.to_bytes()) == 34
    assert read_index(row.to_bytes()) == [row]


def test_files_without_rows_do_not_exist(tmp_path: Path) -> None:
    """testDeleteIfExists, testIsEmptyWhenFileDoesNotExist, testIsEmptyWhenFileIsEmpty, testIsEmptyWhenFileIsNotEmpty"""
    files = ProducerFiles(tmp_path)
    (tmp_path / f"{0:020}.txnindex").touch()
    (tmp_path / f"{40:020}.txnindex").write_bytes(write_index(ROWS))
    files.reset([0, 40], 60, [MORE[-1]])
    assert {path.name: len(path.read_bytes()) for path in tmp_path.iterdir()} == {f"{40:020}.txnindex": 34}
