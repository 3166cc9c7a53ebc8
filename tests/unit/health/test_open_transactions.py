"""The start and the owner of an open transaction, from its first record, from transactional ids, from samples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.health import (
    DEFAULT_SETTINGS,
    FirstRecord,
    KnownTransaction,
    OpenTransaction,
    ReadableSince,
    StartMethod,
    hangs,
    open_transaction,
)

MINUTE = 60_000
FIRST_SAMPLE = ReadableSince(None, 12 * MINUTE)
BETWEEN = ReadableSince(10 * MINUTE, 12 * MINUTE)
LEDGER = KnownTransaction("ledger", 7, 3, start_ms=1_000, timeout_ms=60 * MINUTE, has_partition=True)
OTHER = KnownTransaction("other", 8, 0, start_ms=2_000, timeout_ms=60 * MINUTE, has_partition=True)
SAMPLE, RECORD, TRANSACTION = StartMethod.SAMPLE, StartMethod.RECORD, StartMethod.TRANSACTION

CASES = {
    "nothing but samples": (FIRST_SAMPLE, None, (), OpenTransaction(12 * MINUTE, SAMPLE)),
    "its id": (FIRST_SAMPLE, FirstRecord(7, 3, 5_000), (OTHER, LEDGER), OpenTransaction(1_000, TRANSACTION, 7, "ledger")),
    "transactions are not read": (FIRST_SAMPLE, FirstRecord(7, 3, 5_000), (), OpenTransaction(5_000, RECORD, 7)),
    "the record is not read, and one id has the partition": (
        FIRST_SAMPLE,
        None,
        (LEDGER,),
        OpenTransaction(1_000, TRANSACTION, 7, "ledger"),
    ),
    "the record is not read, and two ids have the partition": (
        FIRST_SAMPLE,
        None,
        (LEDGER, OTHER),
        OpenTransaction(12 * MINUTE, SAMPLE),
    ),
    "no coordinator has it any more": (
        FIRST_SAMPLE,
        FirstRecord(7, 3, 5_000),
        (LEDGER._replace(has_partition=False),),
        OpenTransaction(5_000, RECORD, 7, "ledger"),
    ),
    "the id is fenced by a later epoch": (
        FIRST_SAMPLE,
        FirstRecord(7, 2, 5_000),
        (LEDGER,),
        OpenTransaction(5_000, RECORD, 7, "ledger"),
    ),
    "the tables have an earlier transaction of the producer": (
        BETWEEN,
        FirstRecord(7, 3, 11 * MINUTE),
        (LEDGER._replace(timeout_ms=MINUTE),),
        OpenTransaction(11 * MINUTE, RECORD, 7, "ledger"),
    ),
    "a timestamp before a sample without the record is false": (
        BETWEEN,
        FirstRecord(7, 3, 5_000),
        (),
        OpenTransaction(12 * MINUTE, SAMPLE, 7),
    ),
    "a timestamp after the sample is false": (
        BETWEEN,
        FirstRecord(7, 3, 99 * MINUTE),
        (),
        OpenTransaction(12 * MINUTE, SAMPLE, 7),
    ),
    "a timestamp of the application, such as that of an event": (
        FIRST_SAMPLE,
        FirstRecord(7, 3, -86_400_000),
        (LEDGER,),
        OpenTransaction(1_000, TRANSACTION, 7, "ledger"),
    ),
    "no timestamp": (BETWEEN, FirstRecord(7, 3, None), (), OpenTransaction(12 * MINUTE, SAMPLE, 7)),
}


@pytest.mark.parametrize("case", CASES)
def test_start_and_owner(case: str) -> None:
    seen, first, known, expected = CASES[case]
    assert open_transaction(seen, first, known) == expected


times = st.integers(0, 100)


@given(times, times, times, times, st.booleans(), st.booleans())
def test_the_start_is_never_later_than_the_transaction_was_seen(
    start: int, until_first: int, until_seen: int, timestamp: int, reads_ids: bool, reads_record: bool
) -> None:
    """A transaction begins, writes, is seen; whatever is read, it is open at least since the found start if that is a bound."""
    seen = ReadableSince(None, start + until_first + until_seen)
    known = (LEDGER._replace(start_ms=start, timeout_ms=1_000),) if reads_ids else ()
    found = open_transaction(seen, FirstRecord(7, 3, timestamp) if reads_record else None, known)
    assert found.since_ms <= seen.by_ms
    if reads_ids and not reads_record:
        assert found == OpenTransaction(start, TRANSACTION, 7, "ledger")


def test_a_transaction_hangs_after_a_quarter_of_an_hour() -> None:
    assert not hangs(0, 15 * MINUTE, DEFAULT_SETTINGS)
    assert hangs(0, 15 * MINUTE + 1, DEFAULT_SETTINGS)
