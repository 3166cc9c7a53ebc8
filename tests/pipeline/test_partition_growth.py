"""`__consumer_offsets` gets more partitions: only the partition of a group under the count in force decides (KIP-895)."""

import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from created_tables import created_tables
from deltalake import DeltaTable, write_deltalake
from grown_logs import ERA, NEW, OLD, GrownLog, grown_logs
from hypothesis import given, settings
from hypothesis import strategies as st
from log_builder import NOW_MS, Log, member
from table_logs import applied_records, change_table

from coordinator_core.log.partitioner import partition_for
from pipelines.batch.apply import BatchApplier
from pipelines.batch.placement import StatedPartitions
from pipelines.batch.without_records import finish_batch
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.phases import Phases

#: State in the tables, without the batch that wrote it.
STATE = {
    "offsets": "group_id, topic, partition, committed_offset, log_partition, log_offset",
    "pending_offsets": "producer_id, group_id, topic, partition, committed_offset, log_partition, log_offset",
    "group_records": "group_id, key, value, log_partition, log_offset",
    "groups": "group_id, group_type, state, generation, member_count, log_partition",
    "members": "group_id, member_id, log_partition",
}
EXAMPLES = max(5, (settings.default or settings()).max_examples // 5)


def applier_of(root: str, stated: int | None = None, lines: list[str] | None = None) -> BatchApplier:
    store = created_tables(root)
    progress = (lambda _line: None) if lines is None else lines.append
    retention_ms = ERA.default_retention_ms
    parts = StatedPartitions(stated)
    return BatchApplier(store, ERA, retention_ms, dict, bulk_rows=1_000_000, stated_partitions=parts, progress=progress)


def rows(root: str, sql: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Snapshot.open(root).query(sql).to_pylist()
    return found


def state_of(root: str) -> dict[str, list[tuple[object, ...]]]:
    return {
        name: sorted(tuple(row.values()) for row in rows(root, f"SELECT {columns} FROM {name}"))
        for name, columns in STATE.items()
    }


def positions(log: GrownLog, draws: Iterable[dict[int, int]]) -> list[dict[int, int]]:
    """Ends of batches: each advances some partitions by some records, the last one all of them to their ends."""
    found, at = [], dict.fromkeys(log.logs, 0)
    for draw in draws:
        at = {number: min(log.logs[number].end, at[number] + draw.get(number, 0)) for number in at}
        found.append(at)
    return [*found, {number: each.end for number, each in log.logs.items()}]


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    log=grown_logs(),
    batches=st.lists(st.dictionaries(st.integers(0, NEW - 1), st.integers(1, 6)), max_size=5),
    noticed=st.integers(0, 5),
)
def test_the_tables_are_those_of_the_records_that_brokers_load(
    log: GrownLog, batches: list[dict[int, int]], noticed: int
) -> None:
    """However the records fall into batches, and whenever the job notices the growth: at the latest with the first record of a
    broker that uses the new number, because it requests the number of partitions after the end of the log.
    """
    if not log.speaking:
        return
    with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as expected:
        begin: dict[int, int] = {}
        applier = applier_of(root)
        knows_new = False
        for number, end in enumerate(positions(log, batches)):
            knows_new = knows_new or number >= noticed or log.shows_new_between(begin, end)
            changes = log.changes(begin, end, NEW if knows_new else OLD)
            if changes is not None:
                applier.apply_rows(changes)
            begin = end
        applied_records(log.speaking, ERA, expected)
        assert state_of(root) == state_of(expected)
        assert check(root) == []


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    batches=st.lists(st.dictionaries(st.sampled_from((5, 9)), st.integers(1, 3)), max_size=4),
    expiries=st.integers(0, 2),
    commits=st.integers(1, 3),
)
def test_without_a_count_the_newest_commit_counts(batches: list[dict[int, int]], expiries: int, commits: int) -> None:
    log = GrownLog(logs={5: Log(5), 9: Log(9)})
    for number, count in ((5, 2), (9, commits)):
        for _ in range(count):
            commit(log.logs[number], 10 * number + log.logs[number].end, number * 1000 + log.logs[number].end)
    for _ in range(expiries):
        tombstone(log.logs[5], 60_000)
    with tempfile.TemporaryDirectory() as root:
        applier = applier_of(root)
        begin: dict[int, int] = {}
        for end in positions(log, batches):
            changes = log.changes(begin, end, None)
            if changes is not None:
                applier.apply_rows(changes)
            begin = end
        found = rows(root, "SELECT committed_offset, log_partition FROM offsets")
        assert found == [{"committed_offset": 90 + commits - 1, "log_partition": 9}]
        assert check(root) == []


def commit(log: Log, offset: int, after_ms: int, group: str = "g03") -> None:
    log.commit(0, offset, group=group, at=NOW_MS + after_ms)
    log.records[-1] = log.records[-1]._replace(timestamp=NOW_MS + after_ms)


def tombstone(log: Log, after_ms: int, group: str = "g03") -> None:
    log.offset_tombstone(0, group=group)
    log.records[-1] = log.records[-1]._replace(timestamp=NOW_MS + after_ms)


#: A group that 4 and 10 partitions place differently, and groups whose places rule out smaller counts than 4.
MOVED = next(name for name in map("moved-{}".format, range(99)) if partition_for(name, 4) != partition_for(name, 10))
OTHERS = tuple(map("other-{}".format, range(8)))


class GrowingTables:
    """Tables that follow a topic of 4 partitions, then of 10."""

    def __init__(self, root: str) -> None:
        self.root, self.lines = root, list[str]()
        self.applier = applier_of(root, lines=self.lines)
        self.logs = {number: Log(number) for number in range(10)}
        self._read: dict[int, int] = {}
        for group in OTHERS:
            commit(self.logs[partition_for(group, 4)], 1, 0, group)

    @property
    def old(self) -> Log:
        return self.logs[partition_for(MOVED, 4)]

    @property
    def new(self) -> Log:
        return self.logs[partition_for(MOVED, 10)]

    def apply(self, partitions: int | None) -> None:
        parts = [
            change_table(log, ERA, self._read.get(number, 0), log.end, partitions=partitions)
            for number, log in self.logs.items()
            if log.end > self._read.get(number, 0)
        ]
        self.applier.apply_rows(pa.concat_tables(parts))
        self._read = {number: log.end for number, log in self.logs.items()}

    @property
    def answer(self) -> list[int]:
        found = rows(self.root, f"SELECT committed_offset FROM offsets WHERE group_id = '{MOVED}'")
        return [row["committed_offset"] for row in found]


@pytest.mark.parametrize("partitions", [10, None])
@pytest.mark.parametrize("in_one_batch", [False, True])
def test_four_moments_of_a_moved_group(tmp_path: Path, partitions: int | None, in_one_batch: bool) -> None:
    """Kafka 4.3.0 answers 10, 50, 146 and 900: before the growth, after it, after an expiry by the old shard, and later."""
    tables = GrowingTables(str(tmp_path))
    for _ in range(5):
        commit(tables.old, 10, 1, MOVED)
    if not in_one_batch:
        tables.apply(4 if partitions else None)
        assert tables.answer == [10]
    for after_ms, offset in ((1000, 50), (2000, 146), (4000, 900)):
        commit(tables.new, offset, after_ms, MOVED)
        if offset == 146:
            tombstone(tables.old, 3000, MOVED)
        if not in_one_batch:
            tables.apply(partitions)
            assert tables.answer == [offset]
    if in_one_batch:
        tables.apply(partitions)
        assert tables.answer == [900]
    assert check(str(tmp_path)) == []


def test_until_the_brokers_restart_the_old_number_counts(tmp_path: Path) -> None:
    tables = GrowingTables(str(tmp_path))
    commit(tables.old, 10, 1, MOVED)
    tables.apply(4)
    commit(tables.old, 11, 2, MOVED)
    tables.apply(10)
    assert tables.answer == [11]
    assert [
        line for line in tables.lines if "10 partitions now, and the brokers use 4 until they restart" in line
    ] == tables.lines
    # of another group: an idle one has no state in its new partition, and brokers answer that it has no offsets
    other = next(name for name in OTHERS if partition_for(name, 4) != partition_for(name, 10))
    commit(tables.logs[partition_for(other, 10)], 2, 3, other)
    tables.apply(10)
    assert tables.answer == []
    found = rows(
        str(tmp_path), f"SELECT change, previous_offset FROM offset_history WHERE group_id = '{MOVED}' ORDER BY batch_id"
    )
    assert found[-1] == {"change": "moved", "previous_offset": 11}
    # a restarted job knows it
    again = applier_of(str(tmp_path))
    commit(tables.old, 12, 4, MOVED)
    again.apply_rows(change_table(tables.old, ERA, tables.old.end - 1, tables.old.end, partitions=10))
    assert tables.answer == []
    assert rows(str(tmp_path), "SELECT log_partition_count FROM batches ORDER BY batch_id DESC LIMIT 1") == [
        {"log_partition_count": 10}
    ]


def test_a_record_in_an_old_partition_shows_the_growth(tmp_path: Path) -> None:
    """The new partition of a group may be one that the topic had before."""
    moved = next(name for name in map("old-{}".format, range(99)) if partition_for(name, 4) != partition_for(name, 10) < 4)
    tables = GrowingTables(str(tmp_path))
    commit(tables.logs[partition_for(moved, 4)], 10, 1, moved)
    tables.apply(4)
    commit(tables.logs[partition_for(moved, 10)], 50, 2, moved)
    tables.apply(10)
    # the brokers write nothing more in new places
    commit(tables.logs[partition_for(OTHERS[0], 4)], 2, 3, OTHERS[0])
    tables.apply(10)
    rows_of = "SELECT committed_offset, log_partition FROM offsets WHERE group_id = "
    assert rows(str(tmp_path), f"{rows_of}'{moved}'") == [{"committed_offset": 50, "log_partition": partition_for(moved, 10)}]
    assert rows(str(tmp_path), "SELECT DISTINCT log_partition_count FROM batches WHERE batch_id > 1") == [
        {"log_partition_count": 10}
    ]
    assert check(str(tmp_path)) == []


def test_members_of_a_moved_group_leave(tmp_path: Path) -> None:
    """The histories end what the old partition had, and the views of them know no owner and no open rebalance."""
    tables = GrowingTables(str(tmp_path))
    tables.old.group([member("m1", topics=("foo", "bar"))], group=MOVED, generation=5, leader="m1")
    tables.apply(4)
    commit(tables.new, 1, 1, MOVED)
    tables.apply(10)
    named = f"WHERE group_id = '{MOVED}'"
    assert rows(str(tmp_path), f"SELECT group_type, log_partition FROM groups {named}") == [
        {"group_type": "simple", "log_partition": tables.new.partition}
    ]
    assert rows(str(tmp_path), f"SELECT member_id FROM members {named}") == []
    assert [row["until"] is None for row in rows(str(tmp_path), f"SELECT until FROM ownership {named}")] == [False, False]
    changes = rows(str(tmp_path), f"SELECT change FROM group_history {named} ORDER BY batch_id, change")
    assert [row["change"] for row in changes][-2:] == ["member_left", "moved"]
    assert check(str(tmp_path)) == []


def test_two_rows_for_a_key_become_one(tmp_path: Path) -> None:
    """Earlier versions wrote both on a first load. The batch that learns the number of partitions repairs them."""
    tables = GrowingTables(str(tmp_path))
    commit(tables.old, 10, 1, MOVED)
    tables.apply(None)
    stored = DeltaTable(str(tmp_path / "offsets")).to_pyarrow_table()
    twice = stored.filter(pc.equal(stored["group_id"], MOVED))
    twice = twice.set_column(twice.schema.get_field_index("log_partition"), "log_partition", [[tables.new.partition]])
    twice = twice.set_column(twice.schema.get_field_index("committed_offset"), "committed_offset", [[50]])
    twice = twice.set_column(twice.schema.get_field_index("log_offset"), "log_offset", [[0]]).cast(stored.schema)
    writer = tables.applier.claim()
    writer.begin()

    def add(table: DeltaTable, _stamp: str) -> bool:
        write_deltalake(table, twice, mode="append")
        table.update_incremental()
        return True

    writer.commit("offsets", add)
    assert writer.last is not None
    finish_batch(writer, writer.last, Phases(datetime.now(UTC)), datetime.now(UTC))
    assert sorted(tables.answer) == [10, 50]
    assert "offsets: one row per group_id, topic, partition" in [found.rule for found in check(str(tmp_path))]
    beside = next(name for name in map("beside-{}".format, range(99)) if partition_for(name, 10) == tables.new.partition)
    commit(tables.new, 2, 3, beside)
    tables.apply(10)
    assert tables.answer == [50]
    assert check(str(tmp_path)) == []


def test_a_job_that_ends_after_the_removal_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = GrowingTables(str(tmp_path))
    commit(tables.old, 10, 1, MOVED)
    tables.apply(4)
    commit(tables.new, 50, 1000, MOVED)

    def end(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pipelines.batch.apply.split_changes", end)
        with pytest.raises(KeyboardInterrupt):
            tables.apply(10)
    assert tables.answer == []
    tables.applier = applier_of(str(tmp_path))
    tables.apply(10)
    assert tables.answer == [50]
    changes = rows(str(tmp_path), f"SELECT change FROM offset_history WHERE group_id = '{MOVED}' ORDER BY batch_id")
    assert [row["change"] for row in changes] == ["commit", "moved", "commit"]
    assert check(str(tmp_path)) == []
