"""What people see of open transactions: the status, `grouplake lag --transactions`, and the tab of a group's page."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable
from sampled_topics import START_MS
from shop_pages import ShopPages
from status_story import Story
from transaction_logs import TransactionLog
from transaction_tables import MemorySource, memory_reader

from coordinator_core.state.transaction_state import COMPLETE_ABORT, ONGOING
from pipelines.cli import main
from pipelines.lag.reports.lag_report import LagReport
from pipelines.lag.tables.blocking_transactions import blocking_transactions
from pipelines.query.engine import Snapshot
from pipelines.tables.store import TableStore

Captured = pytest.CaptureFixture[str]
LOG_PARTITION = 0


def story(root: Path, *, reads: bool) -> Story:
    """Billing has an offset in a transaction, and another transaction hides the records after its position on partition 1."""
    return story_with_log(root, reads=reads)[0]


def story_with_log(root: Path, *, reads: bool) -> tuple[Story, TransactionLog]:
    made = Story(str(root))
    log = TransactionLog()
    times = {"start_ms": START_MS, "at": START_MS, "timeout_ms": 3_600_000}
    log.state("ledger-writer", ONGOING, producer_id=7, topics={"__consumer_offsets": (LOG_PARTITION,)}, **times)
    log.state("importer <1>", ONGOING, producer_id=8, topics={"orders": (1, 2)}, **times)
    log.state("elsewhere", ONGOING, producer_id=9, topics={"orders": (0,)}, **times)
    if reads:
        made.reads(memory_reader(MemorySource([log]), print))
    made.end(5).end(9, 1, stable=5).commit(5).commit(5, 1).commit(6, producer=7)
    made.at(1).sample()
    made.at(1_000).sample()
    return made, log


def printed(capsys: Captured, root: Path, *arguments: str) -> str:
    assert main(["lag", "--tables", str(root), "--group", "billing", *arguments]) == 0
    return capsys.readouterr().out


def blocked_by(text: str) -> list[list[str]]:
    """Partition and last column."""
    head, *rows = (line.split(maxsplit=9) for line in text.strip().splitlines())
    assert head[-1] == "BLOCKED-BY"
    return [[row[2], row[-1]] for row in rows]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("read") / "east"
    story(folder, reads=True)
    return folder


@pytest.fixture(scope="module")
def unread(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unread") / "east"
    story(folder, reads=False)
    return folder


def test_the_lag_names_the_transaction(root: Path, unread: Path, capsys: Captured) -> None:
    assert blocked_by(printed(capsys, root, "--transactions")) == [["0", "ledger-writer"], ["1", "importer <1>"]]
    assert blocked_by(printed(capsys, unread, "--transactions")) == [["0", "producer 7"], ["1", "-"]]
    assert "BLOCKED-BY" not in printed(capsys, root)
    assert '"blocked_by":"ledger-writer"' in printed(capsys, root, "--transactions", "--format", "json").replace(": ", ":")


def test_an_earlier_batch_names_the_same_transactions(root: Path, capsys: Captured) -> None:
    assert blocked_by(printed(capsys, root, "--transactions", "--as-of", "1")) == [["0", "ledger-writer"], ["1", "importer <1>"]]


def test_the_names_do_not_change_while_batches_arrive(tmp_path: Path) -> None:
    """The tables are read at one batch, whatever is written meanwhile."""
    made = story(tmp_path, reads=True)
    opened = Snapshot.open(made.root)
    expected = {("billing", "orders", 0): ["ledger-writer"], ("billing", "orders", 1): ["importer <1>"]}
    assert blocking_transactions(opened) == expected
    # a batch of records after the sample, and samples while records are appended after the open transaction
    made.at(1_010).commit(5).batch()
    assert blocking_transactions(Snapshot.open(made.root)) == expected
    for seconds, end in ((1_020, 30), (1_030, 40)):
        made.at(seconds).end(end, 1, stable=5).sample()
        assert blocking_transactions(Snapshot.open(made.root)) == expected
        assert LagReport.of(opened, ["billing"], with_transactions=True).rows["blocked_by"].to_pylist() == [
            "ledger-writer",
            "importer <1>",
        ]


def test_the_names_remain_in_the_history(tmp_path: Path) -> None:
    """The files of an earlier sample are removed after an hour."""
    made = story(tmp_path, reads=True)
    at = made.written[-1][0]
    made.at(1_100).end(9, 1).sample()
    store = TableStore(made.root)
    DeltaTable(store.path("lag")).vacuum(0, dry_run=False, enforce_retention_duration=False)
    earlier = Snapshot.open(made.root, at.isoformat())
    assert blocking_transactions(earlier)["billing", "orders", 1] == ["importer <1>"]
    assert ("billing", "orders", 1) not in blocking_transactions(Snapshot.open(made.root))


def test_it_is_a_column_of_offsets(root: Path, capsys: Captured) -> None:
    assert main(["lag", "--tables", str(root), "--all-groups", "--transactions", "--state"]) == 2
    assert "--transactions add columns to the offsets" in capsys.readouterr().err


def test_the_status_names_the_transaction_of_a_pending_offset(tmp_path: Path) -> None:
    made = story(tmp_path, reads=True)
    (_, ((row),)) = made.written[-1]
    details = {finding["partition"]: finding["detail"] for finding in row["findings"] if finding["rule"] == "hanging_transaction"}
    assert details == {
        0: "A transaction of ledger-writer, open since 11:06 UTC, blocks offset commits on orders-0.",
        1: "A transaction of importer <1>, open since 11:06 UTC, blocks orders-1; 4 records wait.",
    }
    made.expect_same_from_histories()


def test_the_page_of_the_offsets_topic(root: Path, unread: Path) -> None:
    pages = ShopPages(str(root))
    found = pages.json("offsets-topic")["transactions"]
    (position,) = found["next_offsets"]
    assert (found["log_partitions"], position["log_partition"], position["next_offset"]) == (1, 0, 3)
    assert found["ids"] == {"Ongoing": 3}
    page = " ".join(pages.get("offsets-topic").text.split())
    assert "<code>__transaction_state</code> with 1 log partition and 3 transactional ids: 3 Ongoing." in page
    assert re.search(r"The oldest open one began at .*16 min 40 s ago\.", page)
    assert ShopPages(str(unread)).json("offsets-topic")["transactions"] is None
    assert "__transaction_state" not in ShopPages(str(unread)).get("offsets-topic").text


def test_the_tab_of_a_group(root: Path, unread: Path) -> None:
    page = ShopPages(str(root)).get("groups/billing?tab=transactions").text
    assert re.search(r"<td>ledger-writer</td><td>Ongoing</td>.*<td>orders-0</td>", page)
    (hiding,) = re.findall(r"<td>importer &lt;1&gt;</td><td>Ongoing</td>.*?</tr>", page)
    assert "<td>orders-1</td>" in hiding
    assert "16 min 40 s ago" in hiding
    assert "elsewhere" not in page
    before = ShopPages(str(unread)).get("groups/billing?tab=transactions").text
    assert "Commits that wait for the end of their transaction" in before
    assert "Transactional id" not in before
    assert "hides records of orders-1" in before
    assert "<code>grouplake run --transactions</code> shows which one" in before


def test_the_event_stays_on_the_page_after_the_abort(tmp_path: Path) -> None:
    made, log = story_with_log(tmp_path, reads=True)
    made.at(1_100).sample()
    log.state("importer <1>", COMPLETE_ABORT, producer_id=8, start_ms=START_MS, at=START_MS + 1_150_000)
    made.at(1_160).end(10, 1).commit(5).batch()
    made.at(1_200).sample()
    pages = ShopPages(made.root)
    page = pages.json("groups/billing?tab=transactions&span=1h")
    (row,) = page["blocked"]
    assert row == {
        "topic": "orders",
        "partition": 1,
        "blocked_since": at(0),
        "blocked_since_method": "transaction",
        "blocked_by_producer_id": 8,
        "blocked_by_transactional_id": "importer <1>",
        "until": at(1_150),
        "outcome": "aborted",
    }
    events = [(each["at"], each["words"]) for each in page["events"] if each["kind"].startswith("transaction")]
    assert events == [
        (at(1_150), "The transaction of importer <1> was aborted, after 19 min 10 s: orders-1 can be read again"),
        (at(0), "The transaction of importer <1> began, and blocked orders-1"),
    ]
    text = " ".join(pages.get("groups/billing?tab=transactions&span=1h").text.split())
    assert "Transactions that blocked positions of the group in this span" in text
    assert "<td>importer &lt;1&gt;</td>" in text
    # a span after the end does not have it
    made.at(9_000).sample()
    assert ShopPages(made.root).json("groups/billing?span=1h")["blocked"] == []


def at(seconds: float) -> str:
    return datetime.fromtimestamp(START_MS / 1000 + seconds, UTC).isoformat().replace("+00:00", "Z")
