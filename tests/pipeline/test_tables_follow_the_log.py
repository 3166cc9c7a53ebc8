"""For every division of a log into batches, the tables equal the state that the loader of the era builds (the core's fold)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from loaded_logs import replay
from log_builder import Log, member
from table_logs import applied

from coordinator_core.codec import Record, decode
from coordinator_core.codec.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
)
from coordinator_core.codec.messages.modern import (
    PartitionMetadataValue,
    TargetAssignmentMetadataValue,
    TopicMetadata,
    TopicPartitions,
)
from coordinator_core.codec.records import Value
from coordinator_core.log.entries import ControlType
from coordinator_core.reduction.membership_rows import MEMBERSHIP_COLUMNS, OWNERSHIP_COLUMNS, ownership_values
from coordinator_core.state.era import Era
from coordinator_core.state.group_fold import GroupFold
from coordinator_core.state.group_state import GroupState
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.timestamps import to_ms, to_time
from pipelines.tables import definitions

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000

_groups = st.sampled_from(["a", "b"])
_partitions = st.sampled_from([0, 1])
_producers = st.sampled_from([-1, -1, 7, 8])

_operations = st.one_of(
    st.tuples(st.just("commit"), _groups, _partitions, _producers, st.integers(0, 9)),
    st.tuples(st.just("commit"), _groups, _partitions, _producers, st.integers(0, 9)),
    st.tuples(st.just("tombstone"), _groups, _partitions, _producers),
    st.tuples(st.just("marker"), st.sampled_from([7, 8]), st.sampled_from(list(ControlType))),
    st.tuples(st.just("classic"), _groups, st.booleans()),
    st.tuples(st.just("members"), _groups, st.sampled_from(["one", "two", "moved", "static"]), st.integers(5, 6)),
    st.tuples(st.just("group_tombstone"), _groups),
    st.tuples(st.just("consumer"), _groups, st.sampled_from([3, 4, 5, 6, 8]), st.booleans()),
    st.tuples(st.just("garbage"), st.binary(max_size=6)),
)

_MEMBERS = {
    "one": [member()],
    "two": [member(), member("m2", topics=["bar"])],
    "moved": [member(topics=["bar"]), member("m2", topics=["foo"])],
    "static": [member("m3", topics=["bar"], instance_id="i"), member("m2", topics=["foo"])],
}
_TOPIC_ID = UUID(int=7)

#: An operation with its arguments, or a row of a table.
_Row = tuple[Any, ...]


def build(operations: list[_Row]) -> Log:
    log = Log(partition=3)
    for operation in operations:
        match operation:
            case ("commit", group, partition, producer, offset):
                log.commit(partition, offset, group=group, producer=producer)
            case ("tombstone", group, partition, producer):
                log.offset_tombstone(partition, group=group, producer=producer)
            case ("marker", producer, kind):
                log.marker(producer, kind)
            case ("classic", group, has_member):
                log.group([member()] if has_member else [], group=group)
            case ("members", group, names, generation):
                log.group(_MEMBERS[names], group=group, generation=generation, timestamp=NOW_MS)
            case ("group_tombstone", group):
                log.group_tombstone(group)
            case ("consumer", group, record_type, is_tombstone):
                log.modern(record_type, None if is_tombstone else _modern_value(record_type), group=group)
            case ("garbage", key):
                log.raw(key, b"")
    return log


def _modern_value(record_type: int) -> Value:
    values: dict[int, Value] = {
        3: ConsumerGroupMetadataValue(4),
        4: PartitionMetadataValue((TopicMetadata(UUID(int=8), "of another topic", 2),)),
        5: ConsumerGroupMemberMetadataValue(None, None, "client", "/127.0.0.1", ("foo",), classic_member_metadata=None),
        6: TargetAssignmentMetadataValue(4),
        8: ConsumerGroupCurrentMemberAssignmentValue(4, 3, 0, (TopicPartitions(_TOPIC_ID, (0, 1)),)),
    }
    return values[record_type]


def expected_offsets(state: GroupState, groups: list[str]) -> set[_Row]:
    return {
        (group, topic, partition, found.offset, found.log_offset)
        for group in groups
        for (topic, partition), found in state.committed(group).items()
    }


def expected_pending(state: GroupState, groups: list[str]) -> set[_Row]:
    return {
        (producer, group, topic, partition, found.offset)
        for group in groups
        for (topic, partition), by_producer in state.pending(group).items()
        for producer, found in by_producer.items()
    }


def rows(snapshot: Snapshot, sql: str) -> list[_Row]:
    return [tuple(row.values()) for row in snapshot.query(sql).to_pylist()]


def assert_same(state: GroupState, snapshot: Snapshot, groups: list[str]) -> None:
    committed = rows(snapshot, "SELECT group_id, topic, partition, committed_offset, log_offset FROM committed_offsets")
    assert set(committed) == expected_offsets(state, groups)
    assert len(set(committed)) == len(committed)
    pending = rows(snapshot, "SELECT producer_id, group_id, topic, partition, committed_offset FROM pending_offsets")
    assert set(pending) == expected_pending(state, groups)
    found = rows(
        snapshot, "SELECT group_id, group_type, state, generation, protocol_type, protocol, leader, member_count FROM groups"
    )
    views = state.groups()
    assert set(found) == {
        (v.group_id, v.group_type, v.state, v.generation, v.protocol_type, v.protocol, v.leader, len(v.members))
        for v in views.values()
    }
    members = rows(snapshot, "SELECT group_id, member_id, client_id, member_epoch, member_state FROM members")
    assert set(members) == {
        (v.group_id, m.member_id, m.client_id, m.member_epoch, m.member_state) for v in views.values() for m in v.members
    }


class Histories(NamedTuple):
    """Rows of `group_history`, `membership_history` and `ownership_history`, with the offsets of their records."""

    changes: list[_Row]
    membership: list[_Row]
    ownership: list[_Row]


def histories_of(log: Log, era: Era) -> Histories:
    """The histories of the groups, by one fold of the whole log."""
    fold, found = GroupFold(era), Histories([], [], [])
    for log_record in log.records:
        record = None if log_record.is_control else decode(log_record.key, log_record.value)
        if isinstance(record, Record) and era.reads(record.record_type, record.value_version):
            changes, (membership, ownership) = fold.apply(log_record, record, {})
            for group_id, change, group in changes:
                state = (group.group_type, group.state, group.generation) if group else (None, None, None)
                found.changes.append((group_id, change.change, change.member_id, *state, change.detail, log_record.offset))
            if membership is not None:
                row = membership._asdict() | {"state_timestamp": to_time(membership.state_timestamp)}
                found.membership.append((*row.values(), log_record.offset))
            for each in ownership:
                values = (*ownership_values(each)[:-2], list(each.gained), list(each.lost))
                found.ownership.append((*values, log_record.offset))
    return found


def assert_same_histories(snapshot: Snapshot, expected: Histories) -> None:
    columns = "group_id, change, member_id, group_type, state, generation, detail"
    stored = Histories(
        rows(snapshot, f"SELECT {columns}, log_offset FROM group_history"),
        rows(snapshot, f"SELECT {', '.join(MEMBERSHIP_COLUMNS)}, log_offset FROM membership_history"),
        rows(snapshot, f"SELECT {', '.join(OWNERSHIP_COLUMNS)}, log_offset FROM ownership_history"),
    )
    for name, found, wanted in zip(Histories._fields, stored, expected, strict=True):
        assert sorted(found, key=str) == sorted(wanted, key=str), name


@pytest.mark.parametrize("era_name", ["0.10", "3", "4"])
@settings(max_examples=(settings.default or settings()).max_examples // 5)
@given(operations=st.lists(_operations, min_size=1, max_size=25), cuts=st.lists(st.integers(1, 25), max_size=3))
def test_tables_equal_the_fold_at_every_cut(era_name: str, operations: list[_Row], cuts: list[int]) -> None:
    era = Era.named(era_name)
    log = build(operations)
    with tempfile.TemporaryDirectory() as root:
        store = applied(log, era, cuts, root)
        state, _ = replay(log.records, era_name, NOW_MS)
        batch = store.last_batch()
        assert batch is not None
        snapshot = Snapshot(store, batch)
        assert_same(state, snapshot, ["a", "b"])
        assert_same_histories(snapshot, histories_of(log, era))
        assert check(root) == []


def scenarios() -> Iterator[tuple[str, list[_Row], list[int]]]:
    """Interactions across a batch border that random logs rarely contain."""
    commit, tombstone, marker = ("commit", "a", 0, 7, 5), ("tombstone", "a", 0, -1), ("marker", 7, ControlType.COMMIT)
    yield "a marker ends a transaction of an earlier batch", [commit, marker], [1]
    yield "a plain commit after a pending one wins", [commit, ("commit", "a", 0, -1, 9), marker], [1]
    yield "a tombstone between a pending commit and its marker", [("commit", "a", 0, -1, 9), commit, tombstone, marker], [2]
    yield "a tombstone in a batch of its own", [("commit", "a", 0, -1, 9), commit, tombstone, marker], [2, 3]
    yield "a tombstone after the marker", [commit, marker, tombstone], [1]
    yield "a pending commit older than what stands", [commit, ("commit", "a", 0, -1, 9), tombstone, marker], [2]
    yield "the same key again in the next transaction", [commit, marker, ("commit", "a", 0, 7, 6)], [1]
    yield "an abort across batches", [("commit", "a", 0, -1, 9), commit, ("marker", 7, ControlType.ABORT)], [2]
    yield (
        "a group tombstone with offsets left",
        [("commit", "a", 0, -1, 1), ("classic", "a", False), ("group_tombstone", "a")],
        [2],
    )
    yield "an abort takes the last that a group existed by", [commit, ("marker", 7, ControlType.ABORT)], [1]
    yield (
        "an abort takes the last that a removed group existed by",
        [commit, ("classic", "a", True), ("group_tombstone", "a"), ("marker", 7, ControlType.ABORT)],
        [3],
    )
    yield (
        "a commit marker keeps a removed group",
        [commit, ("classic", "a", True), ("group_tombstone", "a"), ("marker", 7, ControlType.COMMIT)],
        [3],
    )
    yield "a hidden group reappears", [("commit", "a", 0, -1, 1), ("group_tombstone", "a"), ("commit", "a", 1, -1, 1)], [1, 2]
    yield (
        "a classic group becomes a consumer group",
        [("classic", "a", False), ("group_tombstone", "a"), ("consumer", "a", 3, False)],
        [1],
    )


@pytest.mark.parametrize("era_name", ["1", "3", "4"])
@pytest.mark.parametrize(("operations", "cuts"), [pytest.param(o, c, id=name) for name, o, c in scenarios()])
def test_interactions_across_batches(era_name: str, operations: list[_Row], cuts: list[int], tmp_path: Path) -> None:
    log = build(operations)
    store = applied(log, Era.named(era_name), cuts, str(tmp_path))
    state, _ = replay(log.records, era_name, NOW_MS)
    batch = store.last_batch()
    assert batch is not None
    assert_same(state, Snapshot(store, batch), ["a"])


def test_every_undecodable_record_is_in_quarantine(tmp_path: Path) -> None:
    log = build([("garbage", b"\x00\x63"), ("commit", "a", 0, -1, 1), ("garbage", b"")])
    store = applied(log, Era.named("4"), [], str(tmp_path))
    batch = store.last_batch()
    assert batch is not None
    found = rows(Snapshot(store, batch), "SELECT log_offset, reason FROM quarantine ORDER BY log_offset")
    assert [offset for offset, _ in found] == [0, 2]
    assert "unknown record type 99" in found[0][1]


def test_history_has_rewinds_within_and_across_batches(tmp_path: Path) -> None:
    log = build([("commit", "a", 0, -1, 9), ("commit", "a", 0, -1, 3), ("commit", "a", 0, -1, 8), ("commit", "a", 0, -1, 2)])
    store = applied(log, Era.named("4"), [3], str(tmp_path))
    batch = store.last_batch()
    assert batch is not None
    found = rows(
        Snapshot(store, batch),
        "SELECT change, committed_offset, previous_offset, commits, min_offset FROM offset_history ORDER BY batch_id",
    )
    assert found == [("rewind", 8, None, 3, 3), ("rewind", 2, 8, 1, 2)]


def test_the_lowest_offset_of_a_rewind_went_back_within_or_across_batches(tmp_path: Path) -> None:
    """Of offsets after 10: 20, 30 and 25, so that 25 is the lowest; then 5 across batches, and 8 after 9 within one."""
    log = build([("commit", "a", 0, -1, offset) for offset in (10, 20, 30, 25, 26, 5, 9, 8)])
    store = applied(log, Era.named("4"), [1, 5], str(tmp_path))
    batch = store.last_batch()
    assert batch is not None
    snapshot = Snapshot(store, batch)
    found = rows(snapshot, "SELECT change, committed_offset, previous_offset, min_offset FROM offset_history ORDER BY batch_id")
    assert found == [("commit", 10, None, 10), ("rewind", 26, 10, 25), ("rewind", 8, 26, 5)]
    resets = rows(snapshot, "SELECT from_offset, to_offset, from_is_least FROM resets ORDER BY to_offset DESC")
    assert resets == [(None, 25, True), (26, 5, True)]


def test_expire_timestamps_are_filled_in_where_the_loader_does(tmp_path: Path) -> None:
    log = Log(partition=3)
    log.commit(0, 5, group="a", version=1, at=NOW_MS)
    store = applied(log, Era.named("0.10"), [], str(tmp_path))
    batch = store.last_batch()
    assert batch is not None
    ((expires,),) = rows(Snapshot(store, batch), "SELECT expire_timestamp FROM offsets")
    assert to_ms(expires) == NOW_MS + DAY_MS


def test_a_name_that_is_learned_late_reaches_the_members(tmp_path: Path) -> None:
    topic_id = UUID(int=77)
    log = Log(partition=3)
    log.consumer_member("m1", group="a")
    owned = (TopicPartitions(topic_id, (0, 1)),)
    log.modern(8, ConsumerGroupCurrentMemberAssignmentValue(1, 0, 0, owned), group="a", member="m1")
    first = log.end
    log.commit(0, 5, group="b", topic="orders", version=4, topic_id=topic_id)
    store = applied(log, Era.named("4"), [first], str(tmp_path))
    for batch_id, topic in ((0, None), (1, "orders")):
        snapshot = Snapshot(store, store.batch_as_of(batch_id))
        ((assigned,),) = rows(snapshot, "SELECT assigned FROM members")
        assert [(part["topic"], part["partitions"]) for part in assigned] == [(topic, [0, 1])]


def test_tables_made_with_other_comments_are_written_on(tmp_path: Path) -> None:
    for name, definition in definitions.tables().items():
        other = pa.schema([field.with_metadata({"comment": "Another comment"}) for field in definition.schema])
        DeltaTable.create(tmp_path / name, schema=other, configuration=dict(definition.properties))
    log = Log(partition=3)
    log.group([member()], group="a")
    log.commit(0, 5, group="a")
    log.commit(0, 6, group="b", producer=7)
    log.raw(b"?", b"?")
    log.commit(0, 7, group="a")
    applied(log, Era.named("4"), [2, 4], str(tmp_path))

    assert check(str(tmp_path)) == []
    fields = DeltaTable(tmp_path / "offsets").schema().fields
    assert {field.metadata["comment"] for field in fields} == {"Another comment"}
