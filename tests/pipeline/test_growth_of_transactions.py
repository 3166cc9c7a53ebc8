"""`__transaction_state` gets more partitions: only the partition of an id under the count in force decides."""

from pathlib import Path

import pytest
from transaction_logs import NOW_MS, TransactionLog
from transaction_tables import TransactionTables

from coordinator_core.log.partitioner import partition_for
from coordinator_core.state.transaction_state import COMPLETE_COMMIT, EMPTY, ONGOING, TransactionState
from pipelines.query.check import check

OLD, NEW = 4, 10
IDS = tuple(map("id-{}".format, range(8)))
MOVED = next(name for name in map("moved-{}".format, range(99)) if partition_for(name, OLD) != partition_for(name, NEW))
_ROWS = "SELECT transactional_id, state, log_partition FROM transactions"


class Topic:
    """The log partitions; the reader sees as many as the topic has."""

    def __init__(self, root: Path, scheme: str) -> None:
        self.logs = [TransactionLog(number) for number in range(NEW)]
        for number, name in enumerate(IDS):
            self.logs[partition_for(name, OLD)].state(name, EMPTY, producer_id=100 + number)
        self.tables = TransactionTables(root, *self.logs[:OLD], scheme=scheme)

    def grow(self) -> None:
        self.tables.source.logs = {log.partition: log for log in self.logs}

    def write(self, count: int, state: TransactionState | None, after_ms: int, name: str = MOVED, producer_id: int = 7) -> None:
        log = self.logs[partition_for(name, count)]
        if state is None:
            log.tombstone(name, at=NOW_MS + after_ms)
        else:
            log.state(name, state, producer_id=producer_id, at=NOW_MS + after_ms)

    def answer(self, name: str = MOVED) -> list[tuple[str, int]]:
        found = self.tables.rows(f"{_ROWS} WHERE transactional_id = '{name}'")
        return [(row["state"], row["log_partition"]) for row in found]

    def history(self) -> list[str]:
        sql = f"SELECT state FROM transaction_history WHERE transactional_id = '{MOVED}' ORDER BY batch_id, log_partition"
        return [row["state"] for row in self.tables.rows(sql)]


@pytest.mark.parametrize("scheme", ["kafka", "jsonl"])
def test_a_moved_id_has_one_row_in_its_new_partition(tmp_path: Path, scheme: str) -> None:
    topic = Topic(tmp_path, scheme)
    old, new = partition_for(MOVED, OLD), partition_for(MOVED, NEW)
    for _ in range(5):
        topic.write(OLD, ONGOING, 0)
    topic.tables.apply()
    assert topic.answer() == [("Ongoing", old)]
    topic.grow()
    topic.write(NEW, EMPTY, 1000)
    topic.tables.apply()
    assert topic.answer() == [("Empty", new)]
    # the shard of the old partition expires the id
    topic.write(OLD, None, 2000)
    topic.tables.apply()
    assert topic.answer() == [("Empty", new)]
    topic.write(NEW, COMPLETE_COMMIT, 3000)
    topic.tables.apply()
    assert topic.answer() == [("CompleteCommit", new)]
    assert topic.history() == ["Ongoing", "Dead", "Empty", "Elsewhere", "CompleteCommit"]
    assert check(str(tmp_path)) == []


@pytest.mark.parametrize("scheme", ["kafka", "jsonl"])
def test_a_first_load_has_one_row(tmp_path: Path, scheme: str) -> None:
    topic = Topic(tmp_path, scheme)
    topic.grow()
    for _ in range(5):
        topic.write(OLD, ONGOING, 0)
    topic.write(NEW, EMPTY, 1000)
    topic.tables.apply()
    assert topic.answer() == [("Empty", partition_for(MOVED, NEW))]
    assert check(str(tmp_path)) == []


def test_until_the_brokers_restart_the_old_number_counts(tmp_path: Path) -> None:
    topic = Topic(tmp_path, "kafka")
    topic.write(OLD, ONGOING, 0)
    topic.tables.apply()
    topic.grow()
    topic.write(OLD, COMPLETE_COMMIT, 1000)
    topic.tables.apply()
    assert topic.answer() == [("CompleteCommit", partition_for(MOVED, OLD))]
    assert any("__transaction_state has 10 partitions now, and the brokers use 4" in line for line in topic.tables.lines)
    # another id shows the restart: a coordinator does not find the idle one
    other = next(name for name in IDS if partition_for(name, OLD) != partition_for(name, NEW))
    topic.write(NEW, EMPTY, 2000, other, producer_id=200)
    topic.tables.apply()
    assert topic.answer() == []
    assert topic.answer(other) == [("Empty", partition_for(other, NEW))]
    assert topic.tables.rows("SELECT transaction_partition_count FROM batches ORDER BY batch_id DESC LIMIT 1") == [
        {"transaction_partition_count": NEW}
    ]
    assert check(str(tmp_path)) == []
