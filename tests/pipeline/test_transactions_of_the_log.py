"""Tables of `__transaction_state` beside those of offsets: batches of both topics, crashes, views, rules of `check`."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cut_off_batches import dying_before
from log_builder import Log
from transaction_logs import NOW_MS, TransactionLog
from transaction_tables import TransactionTables

from coordinator_core.log.errors import LogNotFound, LogUnreachable
from coordinator_core.state.transaction_state import COMPLETE_ABORT, COMPLETE_COMMIT, EMPTY, ONGOING, PREPARE_COMMIT
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import GrouplakeError, TablesError
from pipelines.runtime.timestamps import at_ms
from pipelines.tables import definitions

#: The log partition of offsets in tests.
OFFSETS = 3
NOW = at_ms(NOW_MS)
LATER = NOW + timedelta(hours=1)
_HANGING = (
    "SELECT transactional_id, producer_id, state, reason, hanging_seconds, group_id, topic, partition, pending_offset "
    "FROM hanging_transactions ORDER BY transactional_id NULLS LAST, group_id NULLS FIRST, topic, partition"
)
_GROUPS = (
    "SELECT group_id, transactional_id, producer_id, state, open_since, offsets, pending_offsets FROM transactional_groups "
    "ORDER BY group_id, transactional_id"
)


def offsets() -> Log:
    """A commit of producer 7, and one that waits for its marker."""
    log = Log(OFFSETS)
    log.commit(0, 5, group="ledger", producer=7)
    log.marker(7)
    log.commit(1, 6, group="ledger", producer=7)
    return log


def transactions() -> TransactionLog:
    log = TransactionLog()
    log.state("ledger-writer", EMPTY, producer_id=7)
    log.state("ledger-writer", ONGOING, producer_id=7, topics={"__consumer_offsets": (OFFSETS,)}, start_ms=NOW_MS)
    log.state("ledger-writer", COMPLETE_COMMIT, producer_id=7, start_ms=NOW_MS)
    log.state("ledger-writer", ONGOING, producer_id=7, topics={"__consumer_offsets": (OFFSETS,), "out": (0, 4)}, start_ms=NOW_MS)
    log.state("idle", EMPTY, producer_id=8)
    return log


def states(tables: TransactionTables) -> dict[str, str]:
    return {row["transactional_id"]: row["state"] for row in tables.rows("SELECT * FROM transactions")}


def test_one_batch_has_the_positions_of_both_topics(tmp_path: Path) -> None:
    tables, log = TransactionTables(tmp_path, transactions()), offsets()
    tables.apply(log)
    batch = tables.store.last_batch()
    assert batch is not None
    assert (batch.batch_id, dict(batch.next_offsets), batch.transaction_offsets) == (0, {OFFSETS: 3}, {0: 5})
    assert (batch.records_read, "read_transactions" in batch.phase_ms) == (8, True)
    assert states(tables) == {"idle": "Empty", "ledger-writer": "Ongoing"}
    assert tables.rows("SELECT offsets, pending_offsets FROM transactional_groups") == [{"offsets": 1, "pending_offsets": 1}]
    assert check(str(tmp_path)) == []


def test_transactions_without_new_offsets_are_a_batch_of_their_own(tmp_path: Path) -> None:
    written = transactions()
    tables, log = TransactionTables(tmp_path, written), offsets()
    tables.apply(log)
    tables.apply()
    assert Snapshot.open(str(tmp_path)).batch.batch_id == 0, "nothing new"
    written.state("idle", ONGOING, producer_id=8, topics={"out": (1,)}, start_ms=NOW_MS)
    written.tombstone("ledger-writer")
    tables.apply()
    batch = Snapshot.open(str(tmp_path)).batch
    assert (batch.batch_id, dict(batch.next_offsets), batch.transaction_offsets) == (1, {OFFSETS: 3}, {0: 7})
    assert (batch.records_read, batch.records_kept) == (2, 2)
    assert states(tables) == {"idle": "Ongoing"}
    history = tables.rows(
        "SELECT transactional_id, previous_state, state, producer_id, previous_producer_id, records, commits "
        "FROM transaction_history ORDER BY batch_id, transactional_id"
    )
    assert [tuple(row.values()) for row in history] == [
        ("idle", None, "Empty", 8, None, 1, 0),
        ("ledger-writer", None, "Ongoing", 7, None, 4, 1),
        ("idle", "Empty", "Ongoing", 8, 8, 1, 0),
        ("ledger-writer", "Ongoing", "Dead", None, 7, 1, 0),
    ]
    assert check(str(tmp_path)) == []


def test_a_job_that_does_not_read_them_keeps_the_position(tmp_path: Path) -> None:
    tables, log = TransactionTables(tmp_path, transactions()), offsets()
    tables.apply(log)
    tables.applier.transactions = None
    log.commit(0, 9, group="ledger")
    tables.apply(log, start=3)
    tables.apply()
    batch = Snapshot.open(str(tmp_path)).batch
    assert (batch.batch_id, batch.transaction_offsets) == (1, {0: 5})
    assert states(tables) == {"idle": "Empty", "ledger-writer": "Ongoing"}


def test_tables_without_transactions_have_no_position(tmp_path: Path) -> None:
    tables, log = TransactionTables(tmp_path), offsets()
    tables.applier.transactions = None
    tables.apply(log)
    batch = Snapshot.open(str(tmp_path)).batch
    assert batch.transaction_offsets is None
    assert not any("transaction" in phase for phase, ms in batch.phase_ms.items() if ms)
    assert tables.rows(_HANGING) == []
    assert [row["transactional_id"] for row in tables.rows(_GROUPS)] == [None]
    assert check(str(tmp_path)) == []


def test_records_that_no_coordinator_loads_are_quarantined(tmp_path: Path) -> None:
    written = transactions()
    written.raw(b"\x00\x09", b"x")
    tables = TransactionTables(tmp_path, written)
    tables.apply(offsets())
    (row,) = tables.rows("SELECT * FROM quarantine")
    assert (row["log_topic"], row["log_partition"], row["log_offset"], row["key"]) == ("__transaction_state", 0, 5, b"\x00\x09")
    assert "unknown record type 9" in row["reason"]
    assert check(str(tmp_path)) == []


def test_an_outage_is_reported_once_and_offsets_are_applied(tmp_path: Path) -> None:
    tables, log = TransactionTables(tmp_path, transactions()), offsets()
    tables.source.problem = LogUnreachable("no broker answers")
    tables.apply(log, end=1)
    tables.apply(log, start=1, end=2)
    batch = Snapshot.open(str(tmp_path)).batch
    assert (dict(batch.next_offsets), batch.transaction_offsets) == ({OFFSETS: 2}, None)
    assert tables.lines == ["transactions cannot be read: no broker answers"]
    with pytest.raises(GrouplakeError, match="transactions cannot be read: no broker answers"):
        tables.apply()
    tables.source.problem = None
    tables.apply(log, start=2)
    assert tables.lines[1:] == ["transactions are read again"]
    assert states(tables) == {"idle": "Empty", "ledger-writer": "Ongoing"}


def test_a_log_without_the_records_after_the_position_is_an_error(tmp_path: Path) -> None:
    tables = TransactionTables(tmp_path, transactions())
    tables.source.limits = {0: 2}
    tables.apply()
    tables.source.beginnings = {0: 3}
    tables.source.limits = {}
    with pytest.raises(TablesError, match="now starts at offset 3, but the tables need offset 2"):
        tables.apply()
    tables.source.problem = LogNotFound("no such topic")
    tables.apply()
    assert tables.lines == ["no transactions are read: no such topic"]


def contents(root: Path) -> dict[str, list[str]]:
    snapshot = Snapshot.open(str(root))
    tables = {name: snapshot.query(f"SELECT * FROM {name}").to_pylist() for name in definitions.WRITE_ORDER[:-1]}
    return {name: sorted(str({**row, "batch_id": None}) for row in rows) for name, rows in tables.items()}


@pytest.mark.parametrize("with_offsets", [True, False])
@pytest.mark.parametrize("step", ["transactions", "transaction_history", "batches"])
def test_a_batch_that_is_cut_off_leaves_no_trace(step: str, with_offsets: bool, tmp_path: Path) -> None:
    """The next batch has more records of both topics, and the tables are those of batches without a crash."""
    written, log = transactions(), offsets()
    roots = [tmp_path / "cut", tmp_path / "calm"]
    both = [TransactionTables(root, written) for root in roots]
    for tables in both:
        tables.source.limits = {0: 2}
        tables.apply(log, end=1)
    written.raw(None, b"x")
    cut, calm = both
    cut.source.limits = {0: 4}
    with dying_before(step):
        cut.apply(log if with_offsets else None, start=1, end=2)
    before = Snapshot.open(str(roots[0])).batch
    assert (before.batch_id, dict(before.next_offsets), before.transaction_offsets) == (0, {OFFSETS: 1}, {0: 2})
    # another process continues
    again = TransactionTables(roots[0], written)
    for tables in (again, calm):
        tables.source.limits = {}
        tables.apply(log, start=1)
    assert contents(roots[0]) == contents(roots[1])
    assert check(str(roots[0])) == []


def test_hanging_transactions_and_what_they_block(tmp_path: Path) -> None:
    tables = TransactionTables(tmp_path, transactions(), at=LATER)
    tables.apply(offsets())
    late = {
        "transactional_id": "ledger-writer",
        "producer_id": 7,
        "state": "Ongoing",
        "reason": "timeout",
        "hanging_seconds": 2700,
    }
    assert tables.rows(_HANGING) == [
        {**late, "group_id": None, "topic": "out", "partition": 0, "pending_offset": None},
        {**late, "group_id": None, "topic": "out", "partition": 4, "pending_offset": None},
        {**late, "group_id": "ledger", "topic": "foo", "partition": 1, "pending_offset": 6},
    ]
    assert tables.rows(_GROUPS) == [
        {
            "group_id": "ledger",
            "transactional_id": "ledger-writer",
            "producer_id": 7,
            "state": "Ongoing",
            "open_since": NOW,
            "offsets": 1,
            "pending_offsets": 1,
        }
    ]


def hanging(tmp_path: Path, log: TransactionLog, at: datetime, *, pending: bool = False) -> list[tuple[Any, ...]]:
    tables = TransactionTables(tmp_path, log, at=at)
    tables.apply(offsets() if pending else None)
    return [(row["transactional_id"], row["reason"]) for row in tables.rows(_HANGING)]


QUARTER = timedelta(minutes=15)
SECOND = timedelta(seconds=1)


def test_a_transaction_hangs_after_a_quarter_of_an_hour_whatever_its_timeout(tmp_path: Path) -> None:
    log = TransactionLog()
    for producer, (name, timeout_ms) in enumerate({"fast": 10_000, "slow": 3_600_000, "two-phase": 2_147_483_647}.items()):
        log.state(name, ONGOING, producer_id=producer, topics={"out": (producer,)}, start_ms=NOW_MS, timeout_ms=timeout_ms)
    assert hanging(tmp_path / "before", log, NOW + QUARTER) == []
    found = hanging(tmp_path / "after", log, NOW + QUARTER + SECOND)
    assert found == [("fast", "timeout"), ("slow", "timeout"), ("two-phase", "timeout")]


def test_a_decision_without_all_markers_hangs_as_the_open_transaction_did(tmp_path: Path) -> None:
    log = TransactionLog()
    log.state("decided", PREPARE_COMMIT, topics={"out": (0,)}, start_ms=NOW_MS, at=NOW_MS + 600_000)
    assert hanging(tmp_path / "before", log, NOW + QUARTER) == []
    assert hanging(tmp_path / "after", log, NOW + QUARTER + SECOND) == [("decided", "markers")]


@pytest.mark.parametrize("case", ["unknown producer", "transaction is complete", "not in the transaction"])
def test_offsets_that_no_open_transaction_has(case: str, tmp_path: Path) -> None:
    """As `kafka-transactions find-hanging`: the producer has no id, or the open transaction does not have the partition."""
    log = TransactionLog()
    if case == "unknown producer":
        log.state("other", EMPTY, producer_id=70)
    elif case == "transaction is complete":
        log.state("ledger-writer", COMPLETE_ABORT, producer_id=7)
    else:
        log.state("ledger-writer", ONGOING, producer_id=7, topics={"__consumer_offsets": (9,)}, start_ms=NOW_MS + 60_000)
    assert hanging(tmp_path / "before", log, NOW + QUARTER, pending=True) == []
    found = hanging(tmp_path / "after", log, NOW + QUARTER + SECOND, pending=True)
    assert found == [(None if case == "unknown producer" else "ledger-writer", "no_transaction")]


def rules(tables: TransactionTables) -> list[str]:
    return [found.rule for found in check(tables.store.root)]


def test_a_commit_that_waits_for_a_complete_transaction_breaks_a_rule(tmp_path: Path) -> None:
    log, written = offsets(), TransactionLog()
    minute = 60_000
    written.state("ledger-writer", COMPLETE_COMMIT, producer_id=7, at=NOW_MS + 2 * minute)
    tables = TransactionTables(tmp_path, written)
    tables.apply(log)
    assert rules(tables) == [], "the marker may be in records that were not read yet"
    record = log.commit(5, 5, group="plain", at=NOW_MS + 4 * minute)
    log.records[-1] = record._replace(timestamp=NOW_MS + 4 * minute)
    tables.apply(log, start=3)
    assert rules(tables) == ["pending_offsets: no offset waits for a transaction that is complete"]


def test_a_producer_id_with_two_transactional_ids_breaks_a_rule(tmp_path: Path) -> None:
    log = TransactionLog()
    log.state("a", EMPTY, producer_id=7)
    log.state("b", EMPTY, producer_id=7)
    tables = TransactionTables(tmp_path, log)
    tables.apply()
    assert rules(tables) == ["transactions: a producer id belongs to one transactional id"]


def test_an_old_time_stays_as_it_is(tmp_path: Path) -> None:
    """Times of any size, as in other tables."""
    log = TransactionLog()
    log.state("a", ONGOING, topics={"out": (0,)}, start_ms=2**62, at=2**62)
    log.state("b", ONGOING, topics={"out": (0,)}, producer_id=8, start_ms=-5)
    tables = TransactionTables(tmp_path, log, at=LATER)
    tables.apply()
    assert [row["transactional_id"] for row in tables.rows(_HANGING)] == ["b"]
    (latest,) = tables.rows("SELECT start_timestamp FROM transactions WHERE transactional_id = 'a'")
    assert latest["start_timestamp"].year == datetime.max.replace(tzinfo=UTC).year
