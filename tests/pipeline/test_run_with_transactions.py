"""`grouplake run --transactions` on logs of the coordinator's format: positions, new topics, outages, addresses."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from appended_logs import NOW_MS
from both_topics import BothTopics, commits, initialized
from deltalake import DeltaTable
from doctor_findings import Doctor
from jobs import run_job
from table_contents import contents
from transaction_logs import TransactionLog
from transaction_tables import tables_without_records

from coordinator_core.protocol.internal_topics import TRANSACTION_STATE_TOPIC
from coordinator_core.state.transaction_state import COMPLETE_COMMIT, ONGOING
from pipelines.cli import main
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import GrouplakeError, UsageError
from pipelines.runtime.phases import Phases
from pipelines.runtime.timestamps import at_ms
from pipelines.source.address import parse_address
from pipelines.source.log_reading import SourceOptions
from pipelines.source.position_file import TRANSACTIONS_FILE, epochs_at, read_positions
from pipelines.source.transaction_log import TransactionLogReader, transaction_address
from pipelines.tables.delta_writes import stamped
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter


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


def rows(tables: Path, name: str) -> list[dict[str, Any]]:
    """All rows without their batch."""
    found = Snapshot.open(str(tables)).query(f"SELECT * FROM {name} ORDER BY 1")
    return list(found.drop_columns(["batch_id"]).to_pylist())


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


def test_a_log_that_lost_records_and_has_grown_again_is_found_by_its_epochs(log: BothTopics, tables: Path) -> None:
    log.append(commits(1), initialized("a", "b"))
    log.run(tables)
    log.append(None, initialized("c"))
    log.run(tables)
    assert json.loads((tables / TRANSACTIONS_FILE).read_text()) == [
        {"0": 2, "leader_epochs": {"0": 0}},
        {"0": 3, "leader_epochs": {"0": 1}},
    ]
    (path,) = log.folder.glob(f"{TRANSACTION_STATE_TOPIC}-0/*.log")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    log.append(None, initialized(*"defgh"))
    before = contents(tables)
    with pytest.raises(GrouplakeError, match="partition 0: the log was truncated to offset 0, before offset 3 where the tables"):
        log.run(tables)
    assert contents(tables) == before


def test_epochs_are_learned_without_new_records(log: BothTopics, tmp_path: Path) -> None:
    log.append(commits(1), initialized("a", "b"))
    source = SourceOptions(transaction_address(parse_address(log.address), "source", "4"), "4", 1, {})
    reader = TransactionLogReader(source, print, tmp_path / TRANSACTIONS_FILE)
    # as after a restore: the position without its epochs
    assert reader.read({0: 2}) is None
    reader.close()
    (path,) = log.folder.glob(f"{TRANSACTION_STATE_TOPIC}-0/*.log")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    log.append(None, initialized(*"defgh"))
    for each in (reader, TransactionLogReader(source, print, tmp_path / TRANSACTIONS_FILE)):
        with pytest.raises(GrouplakeError, match="the log was truncated to offset 0, before offset 2"):
            each.read({0: 2})
        # the tables have no position in the log
        assert each.read(None) is not None
        each.close()


@pytest.mark.parametrize("is_applied", [True, False])
def test_epochs_of_a_run_that_was_killed(is_applied: bool, log: BothTopics, tables: Path) -> None:
    log.append(commits(1), initialized("a"))
    log.run(tables)
    log.append(None, initialized("b"))
    source = SourceOptions(transaction_address(parse_address(log.address), "source", "4"), "4", 1, {})
    # the positions are written with the read, before the batch
    assert TransactionLogReader(source, print, tables / TRANSACTIONS_FILE).read({0: 1}) is not None
    further = TransactionLogReader(source, print, tables / TRANSACTIONS_FILE)
    assert epochs_at(read_positions(tables / TRANSACTIONS_FILE), {0: 2 if is_applied else 1}) == {0: 1 if is_applied else 0}
    found = further.read({0: 2 if is_applied else 1})
    assert (found is None) == is_applied
    further.close()


@pytest.mark.parametrize(
    ("arguments", "origin"),
    [([], "old tables"), (["--source"], "old tables"), (["--source", "--transactions"], "log")],
    ids=lambda given: " ".join(given) if isinstance(given, list) else given,
)
def test_a_rebuild_keeps_the_transactions_and_their_position(
    arguments: list[str], origin: str, log: BothTopics, tables: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log.append(commits(1), initialized("a", "b"))
    log.run(tables)
    log.append(None, initialized("b"))
    log.run(tables)
    before = rows(tables, "transactions")
    log.append(None, initialized("c"))
    given = [text for each in arguments for text in ([each, log.address] if each == "--source" else [each])]
    assert main(["rebuild", "--tables", str(tables), *given]) == 0
    printed = capfd.readouterr().err
    assert f"transactions: 2 rows from the {origin}" in printed
    assert "transaction_history: 3 rows from the old tables" in printed
    assert (rows(tables, "transactions"), last(tables).transaction_offsets) == (before, {0: 3})
    # the record after the position
    log.run(tables)
    assert ids(tables) == ["a", "b", "c"]


def test_a_rebuild_repairs_transactions_that_were_lost(log: BothTopics, tables: Path) -> None:
    log.append(commits(1), initialized("a", "b"))
    log.run(tables)
    before = rows(tables, "transactions")
    store = TableStore(str(tables))
    writer = TablesWriter.claim(store)
    writer.begin()

    def lose(target: DeltaTable, stamp: str) -> bool:
        return bool(target.delete("transactional_id = 'a'", commit_properties=stamped(stamp)))

    writer.commit("transactions", lose)
    assert writer.last is not None
    at, retention_ms, next_offsets = at_ms(NOW_MS), writer.last.retention_ms, writer.last.next_offsets
    writer.finish(Phases(at), at, era="4", retention_ms=retention_ms, next_offsets=next_offsets)
    assert ids(tables) == ["b"]
    assert main(["rebuild", "--tables", str(tables), "--source", log.address, "--transactions"]) == 0
    assert rows(tables, "transactions") == before


def test_a_rebuild_from_a_log_that_lacks_transactions(log: BothTopics, tables: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log.append(commits(1), initialized("a", "b"))
    log.run(tables)
    for segment in log.folder.glob(f"{TRANSACTION_STATE_TOPIC}-0/*.log"):
        segment.write_bytes(b"")
    assert main(["rebuild", "--tables", str(tables), "--source", log.address, "--transactions"]) == 1
    assert "__transaction_state), partition 0: the log ends at offset 0, before offset 2" in capfd.readouterr().err
    assert ids(tables) == ["a", "b"]


def test_doctor_compares_the_position_with_the_log(log: BothTopics, tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.append(commits(1))
    doctor = Doctor(capsys)
    arguments = ("--source", log.address, "--transactions")

    def found(*more: str) -> list[tuple[str, str]]:
        return doctor.examine(*arguments, *more).of("source", "position of transactions")

    topic = f"{log.address} ({TRANSACTION_STATE_TOPIC})"
    assert found() == [("ok", f"{topic}: the topic does not exist yet; brokers create it for the first transactional producer")]
    log.append(None, initialized("a", "b"))
    unread = ("ok", f"{topic}: 1 partitions, read from their start by the first run with --transactions")
    assert found() == found("--tables", str(tables)) == [unread]
    log.run(tables)
    log.append(None, initialized("c"))
    capsys.readouterr()
    assert found("--tables", str(tables)) == [("ok", f"{topic} has every offset at which the tables continue; 1 offsets are new")]
    for segment in log.folder.glob(f"{TRANSACTION_STATE_TOPIC}-0/*.log"):
        segment.write_bytes(b"")
    ((mark, text),) = found("--tables", str(tables))
    assert mark == "problem"
    assert "the log ends at offset 0, before offset 2" in text
    assert doctor.examine("--source", log.address).of("source", "position of transactions") == []


def test_restored_tables_are_compared_with_both_topics(
    log: BothTopics, tables: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log.append(commits(1), initialized("a", "b"))
    log.run(tables)
    assert main(["backup", "--tables", str(tables), "--to", str(tmp_path / "backups")]) == 0
    log.append(None, initialized("c"))

    def restored(name: str, *arguments: str) -> tuple[int, list[str]]:
        capfd.readouterr()
        given = ["--from", str(tmp_path / "backups"), "--tables", str(tmp_path / name), "--source", log.address]
        return main(["restore", *given, *arguments]), capfd.readouterr().err.splitlines()[1:]

    of_offsets = f"{log.address} has all records from the position of the tables on: `grouplake run` will read 0 offsets"
    of_transactions = of_offsets.replace(" has", f" ({TRANSACTION_STATE_TOPIC}) has").replace("read 0", "read 1")
    assert restored("both", "--transactions") == (0, [of_offsets, of_transactions])
    not_compared = "the position in __transaction_state is not compared without --transactions"
    assert restored("one") == (0, [of_offsets, not_compared])
    for segment in log.folder.glob(f"{TRANSACTION_STATE_TOPIC}-0/*.log"):
        segment.write_bytes(b"")
    code, lines = restored("short", "--transactions")
    assert (code, lines[0]) == (1, of_offsets)
    assert "the tables are restored, but `grouplake run` cannot continue them: " in lines[1]
    log.run(tmp_path / "both", None)
    assert ids(tmp_path / "both") == ["a", "b"]


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
    assert epochs_at(read_positions(tables / TRANSACTIONS_FILE), {0: 1}) == {0: 0}
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
