"""`grouplake run --transactions` on logs of the coordinator's format: positions, new topics, outages, addresses."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from appended_logs import NOW_MS
from both_topics import BothTopics, commits, initialized
from jobs import run_job
from transaction_logs import TransactionLog
from transaction_tables import tables_without_records

from coordinator_core.protocol.internal_topics import TRANSACTION_STATE_TOPIC
from coordinator_core.state.transaction_state import COMPLETE_COMMIT, ONGOING
from pipelines.cli import main
from pipelines.errors import UsageError
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.source.address import parse_address
from pipelines.source.transaction_log import transaction_address
from pipelines.tables.store import Batch


@pytest.fixture
def log(tmp_path: Path) -> BothTopics:
    return BothTopics(tmp_path / "log")


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Path]:
    folder = tables_without_records(tmp_path / "tables")
    yield folder
    assert check(str(folder)) == []


def last(tables: Path) -> Batch:
    return Snapshot.open(str(tables)).batch


def ids(tables: Path) -> list[str]:
    found = Snapshot.open(str(tables)).query("SELECT transactional_id FROM transactions ORDER BY 1")
    names: list[str] = found["transactional_id"].to_pylist()
    return names


def test_a_run_reads_both_topics_in_one_batch(log: BothTopics, tables: Path) -> None:
    log.append(commits(1, 2), initialized("a", "b"))
    lines = log.run(tables)
    assert "starting Spark" not in lines
    batch = last(tables)
    assert (batch.batch_id, dict(batch.next_offsets), batch.transaction_offsets) == (1, {0: 2}, {0: 2})
    assert ids(tables) == ["a", "b"]
    assert log.run(tables) == [f"up to date: {log.address} has no records after batch 1"]


def test_a_run_with_new_transactions_only(log: BothTopics, tables: Path) -> None:
    log.append(commits(1), initialized("a"))
    log.run(tables)
    log.append(None, initialized("b"))
    assert any("1 records read, 1 kept" in line for line in log.run(tables))
    assert (last(tables).batch_id, last(tables).transaction_offsets) == (2, {0: 2})
    assert ids(tables) == ["a", "b"]
    assert log.run(tables) == [f"up to date: {log.address} has no records after batch 2"]


def test_a_run_without_the_option_does_not_open_the_topic(log: BothTopics, tables: Path) -> None:
    log.append(commits(1), initialized("a"))
    log.run(tables, None)
    assert (last(tables).transaction_offsets, ids(tables)) == (None, [])
    assert log.run(tables, None) == [f"up to date: {log.address} has no records after batch 1"]
    # with the option, the tables get the whole topic
    log.run(tables)
    assert (last(tables).batch_id, ids(tables)) == (2, ["a"])
    log.append(commits(2))
    log.run(tables, None)
    assert last(tables).transaction_offsets == {0: 1}


def test_a_topic_that_does_not_exist_yet(log: BothTopics, tables: Path) -> None:
    log.append(commits(1))
    assert any(line.startswith("no transactions are read: ") for line in log.run(tables))
    assert last(tables).transaction_offsets is None
    log.append(None, initialized("a"))
    log.run(tables)
    assert ids(tables) == ["a"]


def test_a_topic_that_is_shorter_than_the_tables(log: BothTopics, tables: Path) -> None:
    log.append(commits(1), initialized("a", "b"))
    log.run(tables)
    for segment in log.folder.glob(f"{TRANSACTION_STATE_TOPIC}-0/*.log"):
        segment.write_bytes(b"")
    with pytest.raises(UsageError, match=r"__transaction_state\), partition 0: the log ends at offset 0, before offset 2"):
        log.run(tables)


@pytest.mark.parametrize("from_log", [True, False])
def test_a_rebuild_keeps_the_transactions_and_their_position(from_log: bool, log: BothTopics, tables: Path) -> None:
    log.append(commits(1), initialized("a", "b"))
    log.run(tables)
    assert main(["rebuild", "--tables", str(tables), *(["--source", log.address] if from_log else [])]) == 0
    assert (ids(tables), last(tables).transaction_offsets) == (["a", "b"], {0: 2})
    assert any("up to date" in line for line in log.run(tables))
    log.append(None, initialized("c"))
    log.run(tables)
    assert ids(tables) == ["a", "b", "c"]


def test_another_folder_for_the_transactions(tmp_path: Path, log: BothTopics, tables: Path) -> None:
    other = BothTopics(tmp_path / "other")
    log.append(commits(1))
    other.append(commits(7, group="elsewhere"), initialized("a"))
    log.run(tables, other.address)
    assert ids(tables) == ["a"]
    assert dict(last(tables).next_offsets) == {0: 1}


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_and_the_driver_continue_each_other(tmp_path: Path, log: BothTopics) -> None:
    tables = tmp_path / "tables"
    log.append(commits(1), initialized("a"))
    assert "starting Spark" in log.run(tables)
    assert (dict(last(tables).next_offsets), last(tables).transaction_offsets, ids(tables)) == ({0: 1}, {0: 1}, ["a"])
    log.append(None, initialized("b"))
    assert "starting Spark" not in log.run(tables)
    more = TransactionLog()
    more.state("a", ONGOING, topics={"out": (0,)}, producer_id=ord("a"), start_ms=NOW_MS)
    more.state("a", COMPLETE_COMMIT, producer_id=ord("a"), start_ms=NOW_MS)
    log.append(commits(2), more)
    address = transaction_address(parse_address(log.address), "source", "4")
    assert "starting Spark" in run_job(log.address, tables, transactions=address)
    found = Snapshot.open(str(tables)).query("SELECT transactional_id, state FROM transactions ORDER BY 1").to_pylist()
    assert [tuple(row.values()) for row in found] == [("a", "CompleteCommit"), ("b", "Empty")]
    assert last(tables).transaction_offsets == {0: 4}
    assert check(str(tables)) == []


@pytest.mark.parametrize(
    ("source", "given", "expected"),
    [
        ("kafka://h:1/__consumer_offsets", "source", "kafka://h:1/__transaction_state"),
        (
            "kafka://h:1/mirror.__consumer_offsets",
            "kafka://h:1/mirror.__transaction_state",
            "kafka://h:1/mirror.__transaction_state",
        ),
        ("spark-kafka://h:1", "kafka://h:1", "kafka://h:1/__transaction_state"),
        ("segments:/data", "source", "segments:/data (__transaction_state)"),
        ("jsonl:offsets.jsonl", "jsonl:transactions.jsonl", "jsonl:transactions.jsonl"),
    ],
)
def test_addresses(source: str, given: str, expected: str) -> None:
    assert str(transaction_address(parse_address(source), given, "4")) == expected


@pytest.mark.parametrize(
    ("source", "given", "era", "message"),
    [
        ("jsonl:offsets.jsonl", "source", "4", "has one topic only; add an address"),
        ("spark-kafka://h:1", "source", "4", "cannot be read without Spark"),
        ("kafka://h:1", "source", "0.10", r"era 0\.10 has no transactions; use --era 1, 2, 3, 4"),
        ("kafka://h:1", "nowhere", "4", "invalid source address"),
    ],
)
def test_addresses_that_cannot_be_read(source: str, given: str, era: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        transaction_address(parse_address(source), given, era)
