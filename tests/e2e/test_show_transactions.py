"""`grouplake show --transactions` prints `__transaction_state` as Kafka's tools do."""

import base64
import json
from pathlib import Path

import pytest
from transaction_logs import NOW_MS, TransactionLog

from coordinator_core.log.entries import LogRecord
from coordinator_core.state.transaction_state import COMPLETE_COMMIT, EMPTY, ONGOING, PREPARE_ABORT
from pipelines.cli import main

Captured = pytest.CaptureFixture[str]


def dumped(folder: Path, records: list[LogRecord]) -> str:
    """A dump of the records as a source address."""

    def text(data: bytes | None) -> str | None:
        return None if data is None else base64.b64encode(data).decode()

    lines = [
        {"partition": r.partition, "offset": r.offset, "timestamp": r.timestamp, "key": text(r.key), "value": text(r.value)}
        for r in records
    ]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return f"jsonl:{folder / 'log.jsonl'}"


@pytest.fixture
def source(tmp_path: Path) -> str:
    log = TransactionLog(4)
    log.state("ledger", EMPTY, producer_id=7, version=0)
    log.state("ledger", ONGOING, producer_id=7, topics={"out": (1, 0), "a": (3,)}, start_ms=NOW_MS - 5_000)
    log.state("writer", PREPARE_ABORT, producer_id=8, epoch=2, topics={"out": (4,)}, start_ms=NOW_MS, timeout_ms=900_000)
    log.state("gone", COMPLETE_COMMIT, producer_id=9, start_ms=NOW_MS)
    log.tombstone("gone")
    log.state("idle", EMPTY, producer_id=10, version=1, client_transaction_version=2)
    return dumped(tmp_path, log.records)


def shown(capsys: Captured, source: str, *arguments: str, code: int = 0) -> tuple[list[str], str]:
    assert main(["show", "--source", source, "--transactions", *arguments]) == code
    out, err = capsys.readouterr()
    return out.splitlines(), err


def test_json_is_that_of_the_formatter(source: str, capsys: Captured) -> None:
    """`org.apache.kafka.tools.consumer.TransactionLogMessageFormatter` of 4.x."""
    lines, err = shown(capsys, source)
    assert err == ""
    assert lines[0] == (
        '{"key":{"type":0,"data":{"transactionalId":"ledger"}},"value":{"version":0,"data":{"producerId":7,"producerEpoch":0,'
        f'"transactionTimeoutMs":60000,"transactionStatus":0,"transactionPartitions":null,'
        f'"transactionLastUpdateTimestampMs":{NOW_MS},"transactionStartTimestampMs":-1}}}}}}'
    )
    assert json.loads(lines[4]) == {"key": {"type": 0, "data": {"transactionalId": "gone"}}, "value": None}
    assert json.loads(lines[5])["value"]["data"]["clientTransactionVersion"] == 2
    (first, *_), _ = shown(capsys, source, "--position")
    assert first.startswith('{"partition":4,"offset":0,"key"')


@pytest.mark.parametrize(("era", "name"), [("1", "Set"), ("2", "Set"), ("3", "HashSet"), ("4", "HashSet")])
def test_classic_lines(era: str, name: str, source: str, capsys: Captured) -> None:
    """`kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter`, 0.11 to 3.8."""
    lines, _ = shown(capsys, source, "--format", "classic", "--era", era)
    assert lines[1] == (
        "ledger::TransactionMetadata(transactionalId=ledger, producerId=7, producerEpoch=0, txnTimeoutMs=60000, state=Ongoing, "
        f"pendingState=None, topicPartitions={name}(a-3, out-0, out-1), txnStartTimestamp={NOW_MS - 5_000}, "
        f"txnLastUpdateTimestamp={NOW_MS})"
    )
    assert lines[4] == "gone::NULL"
    lines, _ = shown(capsys, source, "--format", "classic", "--position")
    assert lines[4] == "4-4 gone::NULL"


def test_the_list_of_kafka_transactions(source: str, capsys: Captured) -> None:
    lines, err = shown(capsys, source, "--format", "list")
    assert err == ""
    assert lines == [
        "TransactionalId\tCoordinator\tProducerId\tTransactionState\t",
        "idle           \tNone       \t10        \tEmpty           \t",
        "ledger         \tNone       \t7         \tOngoing         \t",
        "writer         \tNone       \t8         \tPrepareAbort    \t",
    ]


def test_the_descriptions_of_kafka_transactions(source: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.runtime.timestamps.now_ms", lambda: NOW_MS + 1_000)
    (head, idle, ledger, writer), _ = shown(capsys, source, "--format", "describe")
    assert head.split() == [
        *("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState", "TransactionTimeoutMs"),
        *("CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions"),
    ]
    assert [cell.strip() for cell in idle.split("\t")] == ["None", "idle", "10", "0", "Empty", "60000", "None", "None", "", ""]
    assert ledger.split() == ["None", "ledger", "7", "0", "Ongoing", "60000", str(NOW_MS - 5_000), "6000", "a-3,out-0,out-1"]
    assert writer.split() == ["None", "writer", "8", "2", "PrepareAbort", "900000", str(NOW_MS), "1000", "out-4"]


@pytest.mark.parametrize("text", ["json", "classic", "list", "describe"])
def test_records_that_are_no_transactions_are_reported(text: str, tmp_path: Path, capsys: Captured) -> None:
    log = TransactionLog()
    log.state("ledger", EMPTY)
    log.raw(b"\x00\x09", b"x")
    lines, err = shown(capsys, dumped(tmp_path, log.records), "--format", text, code=1)
    assert len(lines) == (1 if text in ("json", "classic") else 2)
    assert err == "partition 0 offset 1: unknown record type 9\n"


def test_tables_are_those_of_transactions(source: str, capsys: Captured) -> None:
    assert main(["show", "--source", source, "--format", "list"]) == 2
    assert "--format list prints transactional ids: add --transactions" in capsys.readouterr().err
    assert main(["show", "--source", source, "--transactions", "--format", "classic", "--era", "0.10"]) == 2
    assert "era 0.10 has no transactions" in capsys.readouterr().err
