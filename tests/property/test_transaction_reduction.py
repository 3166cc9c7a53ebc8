"""A reduced range of `__transaction_state` has the states of a fold of all its records, in any pieces."""

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transaction_logs import NOW_MS, TransactionLog, folded, transaction_logs

from coordinator_core.log.columns import columns_of
from coordinator_core.reduction import transaction_reduction
from coordinator_core.reduction.reduced_transactions import COUNTS, TransactionReduction
from coordinator_core.reduction.transaction_load import loaded_transactions
from coordinator_core.reduction.transaction_reduction import TransactionReducer
from coordinator_core.state.transaction_cache import LoggedTransaction
from coordinator_core.state.transaction_state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
)


def reduced(log: TransactionLog, cuts: Iterable[int] = (), era: str = "4") -> TransactionReduction:
    """The whole log, in pieces that end at the offsets `cuts`."""
    reducer = TransactionReducer(era, log.partition)
    ends = sorted({min(cut, log.end) for cut in cuts} | {log.end})
    for start, end in zip([0, *ends], ends, strict=False):
        reducer.add(columns_of([r for r in log.records if start <= r.offset < end], next_offset=end))
    return reducer.finish()


def states(found: TransactionReduction) -> dict[str, LoggedTransaction]:
    """The ids with a state."""
    return {logged.metadata.transactional_id: logged for logged in loaded_transactions(found)}


@given(log=transaction_logs(partition=3), cuts=st.lists(st.integers(0, 30), max_size=4), era=st.sampled_from(["1", "3", "4"]))
def test_it_equals_a_fold_of_all_records(log: TransactionLog, cuts: list[int], era: str) -> None:
    found = reduced(log, cuts, era)
    expected, unread = folded(log.records, era)
    assert states(found) == dict(expected.transactions)
    assert [(each.record.offset, each.anomaly.detail) for each in found.unread] == sorted(unread.items())
    assert found.records_read == len(log.records)
    assert (found.partition, found.damages) == (3, ())


def one_life() -> TransactionLog:
    log = TransactionLog()
    log.state("writer", EMPTY)
    for _ in range(3):
        log.state("writer", ONGOING, topics={"t": (0,)}, start_ms=NOW_MS)
        log.state("writer", PREPARE_COMMIT, topics={"t": (0,)}, start_ms=NOW_MS)
        log.state("writer", COMPLETE_COMMIT, start_ms=NOW_MS)
    log.state("writer", COMPLETE_ABORT, start_ms=NOW_MS)
    return log


@pytest.mark.parametrize("cuts", [(), (1,), (2, 5, 9)])
def test_counts_of_the_records(cuts: tuple[int, ...]) -> None:
    (found,) = reduced(one_life(), cuts).transactions.select([*COUNTS, "log_offset"]).to_pylist()
    assert found == {"records": 11, "initializations": 1, "commits": 3, "aborts": 1, "log_offset": 10}


def test_many_pieces_are_reduced_before_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_reduction, "_MIN_WAITING", 2)
    log = one_life()
    reducer = TransactionReducer("4", 0)
    for record in log.records:
        reducer.add(columns_of([record], next_offset=record.offset + 1))
    assert reducer.finish().transactions.equals(reduced(log).transactions)


def test_a_tombstone_removes_the_id_and_a_later_record_makes_it_again() -> None:
    log = one_life()
    log.tombstone("writer")
    found = reduced(log)
    assert found.transactions.select(["state", "log_offset", "records"]).to_pylist() == [
        {"state": None, "log_offset": 11, "records": 12}
    ]
    assert states(found) == {}
    log.state("writer", EMPTY, producer_id=8)
    assert states(reduced(log, cuts=(12,)))["writer"].metadata.producer_id == 8


def test_the_record_before_a_damaged_one_counts() -> None:
    log = TransactionLog()
    log.state("writer", ONGOING, topics={"t": (0,)})
    whole = log.state("writer", PREPARE_COMMIT, topics={"t": (0,)})
    for size in (20, 24, 17):
        log.raw(whole.key, (whole.value or b"")[:size])
    found = reduced(log)
    assert states(found)["writer"].metadata.state is PREPARE_COMMIT
    assert [each.record.offset for each in found.unread] == [2, 3, 4]


def test_every_damaged_record_is_reported() -> None:
    log = TransactionLog()
    good = log.state("writer", EMPTY)
    log.raw(None, b"x")
    log.raw(b"\x00\x09", b"x")
    log.raw(good.key, b"\x00\x07" + (good.value or b"")[2:])
    log.raw(good.key, None, is_control=True)
    log.state("writer", EMPTY, epoch=1)
    found = reduced(log)
    assert Counter(each.anomaly.detail.split(":")[0] for each in found.unread).total() == 4
    assert [each.record.offset for each in found.unread] == [1, 2, 3, 4]
    assert states(found)["writer"].metadata.producer_epoch == 1


def test_an_era_reads_its_value_versions() -> None:
    log = TransactionLog()
    log.state("writer", EMPTY, version=0)
    log.state("writer", EMPTY, version=1, epoch=5)
    assert states(reduced(log, era="2"))["writer"].metadata.producer_epoch == 0
    assert states(reduced(log, era="3"))["writer"].metadata.producer_epoch == 5
    with pytest.raises(ValueError, match="no transactions"):
        TransactionReducer("0.10", 0)
