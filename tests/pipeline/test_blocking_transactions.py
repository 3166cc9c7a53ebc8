"""What people see of open transactions: the status, `grouplake lag --transactions`, and the tab of a group's page."""

import re
from pathlib import Path

import pytest
from sampled_topics import START_MS
from shop_pages import ShopPages
from status_story import Story
from transaction_logs import TransactionLog
from transaction_tables import MemorySource, memory_reader

from coordinator_core.state.transaction_state import ONGOING
from pipelines.cli import main

Captured = pytest.CaptureFixture[str]
LOG_PARTITION = 0


def story(root: Path, *, reads: bool) -> Story:
    """Billing has an offset in a transaction, and another transaction hides the records after its position on partition 1."""
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
    return made


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


def test_an_earlier_batch_names_transactions_of_offsets_only(root: Path, capsys: Captured) -> None:
    assert blocked_by(printed(capsys, root, "--transactions", "--as-of", "1")) == [["0", "ledger-writer"], ["1", "-"]]


def test_it_is_a_column_of_offsets(root: Path, capsys: Captured) -> None:
    assert main(["lag", "--tables", str(root), "--all-groups", "--transactions", "--state"]) == 2
    assert "--transactions add columns to the offsets" in capsys.readouterr().err


def test_the_status_names_the_transaction_of_a_pending_offset(tmp_path: Path) -> None:
    made = story(tmp_path, reads=True)
    (_, ((row),)) = made.written[-1]
    details = {finding["partition"]: finding["detail"] for finding in row["findings"] if finding["rule"] == "hanging_transaction"}
    assert details == {
        0: "an offset commit waits for a transaction of ledger-writer since 1000 s",
        1: "the last stable offset waits for a transaction since 999 s",
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
