"""Hanging transactions: one definition for rule and view, and what the job reads about the transaction that blocks a group."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sampled_topics import START_MS
from status_story import Story
from transaction_logs import TransactionLog
from transaction_tables import MemorySource, memory_reader

from coordinator_core.health import DEFAULT_SETTINGS, FirstRecord, StatusSettings
from coordinator_core.log.errors import LogUnreachable
from coordinator_core.state.transaction_state import ONGOING, PREPARE_COMMIT
from pipelines.lag.inputs.lag_inputs import LagInputs
from pipelines.lag.tables.blocking_transactions import blocking_transactions
from pipelines.query.engine import Snapshot
from pipelines.tables.store import DEFAULT_TRANSACTION_MS

pytestmark = pytest.mark.long

_VIEW = "SELECT group_id, topic, partition FROM hanging_transactions"


def test_folders_of_earlier_layouts_have_the_default() -> None:
    assert DEFAULT_SETTINGS.transaction_ms == DEFAULT_TRANSACTION_MS


@pytest.mark.parametrize("minutes", [5, 15])
def test_the_rule_and_the_view_find_the_same_at_every_time(tmp_path: Path, minutes: int) -> None:
    """Whatever the timeouts: transactions that are open, decided, or unknown to their coordinator."""
    limit_ms = minutes * 60_000
    log = TransactionLog()
    times = {"at": START_MS, "timeout_ms": 60_000}
    log.state("ledger", ONGOING, producer_id=7, topics={"__consumer_offsets": (0,)}, start_ms=START_MS - 20_000, **times)
    log.state("importer", ONGOING, producer_id=8, topics={"orders": (1,)}, start_ms=START_MS + 5_000, **times)
    log.state("decided", PREPARE_COMMIT, producer_id=9, topics={"orders": (2,)}, start_ms=START_MS - 9_000, **times)
    made = Story(str(tmp_path), StatusSettings(transaction_ms=limit_ms))
    made.reads(memory_reader(MemorySource([log]), print))
    made.end(5).end(9, 1, stable=5).end(9, 2, stable=5)
    made.commit(5).commit(5, 1).commit(5, 2).commit(6, producer=7).commit(6, 3, producer=70)
    made.at(6).sample()
    seen = set()
    for seconds in (-21, -20, -19.9, -10, -9, -8.9, -1, 0, 0.1, 4, 5, 5.1, 6):
        row = made.at(limit_ms / 1000 + seconds).sample()
        found = {(each["topic"], each["partition"]) for each in row["findings"] if each["rule"] == "hanging_transaction"}
        view = Snapshot.open(made.root).query(_VIEW).to_pylist()
        rows = {(each["topic"], each["partition"]) for each in view if each["topic"] == "orders"}
        assert found == rows, seconds
        seen.add(frozenset(number for _, number in found))
    # each of them began to hang at a time of its own
    assert seen == {frozenset(each) for each in ((), (0,), (0, 2), (0, 2, 3), (0, 1, 2, 3))}


class Records:
    """First records by partition; a text is the reason why one is unknown."""

    def __init__(self, found: FirstRecord | str) -> None:
        self.found = found
        self.is_away = False
        self.requests: list[Mapping[tuple[str, int], int]] = []

    def read(self, offsets: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], FirstRecord | str]:
        self.requests.append(dict(offsets))
        if self.is_away:
            raise LogUnreachable("no broker answers")
        return dict.fromkeys(offsets, self.found)


def blocked(tmp_path: Path, records: Records) -> Story:
    """Billing is at the last stable offset of partition 0; the tables have no transactions."""
    made = Story(str(tmp_path))
    made.inputs = LagInputs(first_records=records.read)
    made.restart()
    made.end(9, stable=5).commit(5)
    return made


def row_of(made: Story) -> dict[str, Any]:
    (row,) = Snapshot.open(made.root).query("SELECT * FROM lag").to_pylist()
    return {name: row[name] for name in ("blocked_since_method", "blocked_by_producer_id", "blocked_by_transactional_id")}


def test_without_transactions_the_record_has_producer_and_start(tmp_path: Path) -> None:
    """54 minutes, although the job has sampled for 42."""
    records = Records(FirstRecord(8, 0, START_MS - 12 * 60_000))
    made = blocked(tmp_path, records)
    made.at(1).sample()
    assert records.requests == [], "the transaction may end soon"
    made.at(60).end(30, stable=5).sample()
    row = made.at(42 * 60).end(60, stable=5).sample()
    assert records.requests == [{("orders", 0): 5}]
    assert row_of(made) == {
        "blocked_since_method": "record",
        "blocked_by_producer_id": 8,
        "blocked_by_transactional_id": None,
    }
    (finding,) = (each for each in row["findings"] if each["rule"] == "hanging_transaction")
    assert finding["detail"] == "A transaction of producer 8, open since 10:54 UTC, blocks orders-0; 55 records wait."
    assert blocking_transactions(Snapshot.open(made.root)) == {("billing", "orders", 0): ["producer 8"]}
    made.expect_same_from_histories()
    # another process reads it once more
    made.restart()
    made.at(43 * 60).sample()
    assert (row_of(made)["blocked_by_producer_id"], len(records.requests)) == (8, 2)
    # another transaction
    made.at(44 * 60).end(70, stable=61).commit(61).sample()
    assert row_of(made)["blocked_by_producer_id"] is None
    made.at(45 * 60).end(71, stable=61).sample()
    assert records.requests[2:] == [{("orders", 0): 61}]
    made.expect_same_from_histories()


@pytest.mark.parametrize(("reason", "pause"), [("topic_authorization_failed", 3_600), ("not_leader_or_follower", 60)])
def test_a_record_that_cannot_be_read_leaves_a_bound(tmp_path: Path, reason: str, pause: int) -> None:
    records = Records(reason)
    made = blocked(tmp_path, records)
    made.at(1).sample()
    row = made.at(1_000).sample()
    (finding,) = (each for each in row["findings"] if each["rule"] == "hanging_transaction")
    assert finding["detail"] == "A transaction, open since 11:06 UTC at least, blocks orders-0; 4 records wait."
    made.at(1_000 + pause - 1).sample()
    assert len(records.requests) == 1
    made.at(1_000 + pause + 1).sample()
    assert len(records.requests) == 2
    made.expect_same_from_histories()


def test_an_outage_leaves_a_bound(tmp_path: Path) -> None:
    records = Records(FirstRecord(8, 0, START_MS))
    records.is_away = True
    made = blocked(tmp_path, records)
    made.at(1).sample()
    made.at(100).sample()
    assert row_of(made)["blocked_since_method"] == "sample"
    records.is_away = False
    made.at(200).sample()
    assert row_of(made)["blocked_since_method"] == "record"
