"""The rules of a reduction, one by one."""

from uuid import UUID

import numpy as np
import pytest
from loaded_logs import ERA_OF_LOG, load, log_records
from log_builder import NOW_MS, Log
from offset_logs import reduced

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.columns import columns_of, parse_columns
from coordinator_core.log.entries import ControlType
from coordinator_core.log.record_batch import BatchRecord, write_batch
from coordinator_core.reduction.partition_reduction import PartitionReducer, Reduction
from coordinator_core.state.era import Era

SCALA, JAVA = "3", "4"
UNKNOWN_CONTROL_TYPE = 5
P, Q = 11, 12

both = pytest.mark.parametrize("era", [SCALA, JAVA])


@pytest.fixture
def log() -> Log:
    return Log()


def committed(reduction: Reduction) -> dict[int, int]:
    return dict(zip(reduction.commits["partition"].to_pylist(), reduction.commits["committed_offset"].to_pylist(), strict=True))


def removed(reduction: Reduction) -> dict[int, int]:
    return dict(zip(reduction.tombstones["partition"].to_pylist(), reduction.tombstones["log_offset"].to_pylist(), strict=True))


def pending(reduction: Reduction) -> dict[tuple[int, int], int]:
    rows = reduction.pending.to_pylist()
    return {(row["producer_id"], row["partition"]): row["committed_offset"] for row in rows}


def removals(reduction: Reduction) -> set[tuple[int | None, int, int]]:
    return {(row["producer_id"], row["partition"], row["log_offset"]) for row in reduction.pending_tombstones.to_pylist()}


def history(reduction: Reduction) -> tuple[int, int | None, bool, int | None]:
    (row,) = reduction.commits.to_pylist() + reduction.tombstones.to_pylist()
    return row["commits"], row["min_offset"], row["rewound"], row["first_offset"]


def test_a_commit_has_all_its_columns(log: Log) -> None:
    key = OffsetCommitKey("grüppe", "t", 3)
    value = OffsetCommitValue(42, 7, "méta", 1000, -1, UUID("00112233-4455-6677-8899-aabbccddeeff"))
    record = log.append(Record(1, key, value, 4))._replace(timestamp=5000)
    (row,) = reduced([record], JAVA).commits.to_pylist()
    assert row == {
        "group_id": "grüppe",
        "topic": "t",
        "partition": 3,
        "committed_offset": 42,
        "leader_epoch": 7,
        "metadata": "méta",
        "commit_timestamp": 1000,
        "expire_timestamp": -1,
        "topic_id": "ABEiM0RVZneImaq7zN3u_w",
        "producer_id": None,
        "log_offset": 0,
        "record_timestamp": 5000,
        "commits": 1,
        "min_offset": 42,
        "rewound": False,
        "first_offset": 42,
    }


@both
def test_the_last_operation_on_a_key_decides(log: Log, era: str) -> None:
    log.commit(0, 1)
    log.commit(1, 5)
    log.commit(0, 2)
    log.offset_tombstone(1)
    reduction = reduced(log.records, era)
    assert committed(reduction) == {0: 2}
    assert removed(reduction) == {1: 3}


@both
def test_types_0_and_1_name_the_same_key(log: Log, era: str) -> None:
    log.commit(0, 1, record_type=0, version=0)
    log.commit(0, 2)
    assert committed(reduced(log.records, era)) == {0: 2}


@both
def test_a_transactional_commit_takes_effect_at_its_marker(log: Log, era: str) -> None:
    log.commit(0, 1, producer=P)
    open_ = reduced(log.records, era)
    assert (committed(open_), pending(open_)) == ({}, {(P, 0): 1})
    log.marker(P)
    closed = reduced(log.records, era)
    assert (committed(closed), pending(closed)) == ({0: 1}, {})
    (row,) = closed.commits.to_pylist()
    assert (row["log_offset"], row["producer_id"]) == (0, P)


@both
def test_an_aborted_commit_leaves_no_row(log: Log, era: str) -> None:
    log.commit(0, 1, producer=P)
    log.marker(P, ControlType.ABORT)
    reduction = reduced(log.records, era)
    assert reduction.commits.num_rows == reduction.tombstones.num_rows == reduction.pending.num_rows == 0
    assert reduction.group_activity.to_pylist() == [
        {"group_id": "group", "last_value_offset": 0, "last_tombstone_offset": -1, "upserts": 0, "pendings": 0, "removals": 0}
    ]


@both
def test_a_newer_plain_commit_outlives_the_marker(log: Log, era: str) -> None:
    log.commit(0, 1, producer=P)
    log.commit(0, 2)
    log.marker(P)
    assert committed(reduced(log.records, era)) == {0: 2}


@both
def test_of_two_transactions_the_newer_commit_wins_whichever_ends_last(log: Log, era: str) -> None:
    log.commit(0, 1, producer=P)
    log.commit(0, 2, producer=Q)
    log.marker(Q)
    log.marker(P)
    assert committed(reduced(log.records, era)) == {0: 2}


def test_scala_plain_tombstone_spares_pending_commits(log: Log) -> None:
    log.commit(0, 1, producer=P)
    log.offset_tombstone(0)
    log.marker(P)
    reduction = reduced(log.records, SCALA)
    assert (committed(reduction), removed(reduction), removals(reduction)) == ({0: 1}, {}, set())


def test_scala_transactional_tombstone_removes_its_own_pending_commit_only(log: Log) -> None:
    log.commit(0, 1)
    log.commit(0, 2, producer=P)
    log.commit(0, 3, producer=Q)
    log.offset_tombstone(0, producer=P)
    reduction = reduced(log.records, SCALA)
    assert committed(reduction) == {0: 1}
    assert pending(reduction) == {(Q, 0): 3}
    assert removals(reduction) == {(P, 0, 3)}


def test_java_tombstone_wipes_committed_and_every_pending_commit_even_inside_an_aborted_transaction(log: Log) -> None:
    log.commit(0, 1)
    log.commit(0, 2, producer=P)
    log.commit(0, 3, producer=Q)
    log.offset_tombstone(0, producer=P)
    log.marker(P, ControlType.ABORT)
    log.marker(Q)
    reduction = reduced(log.records, JAVA)
    assert (committed(reduction), pending(reduction), removed(reduction)) == ({}, {}, {0: 3})
    assert removals(reduction) == {(None, 0, 3)}


def test_scala_removal_of_commits_pending_before_the_range_is_reported_until_the_first_marker(log: Log) -> None:
    log.offset_tombstone(0, producer=P)
    log.marker(P)
    log.offset_tombstone(1, producer=P)
    log.marker(P)
    reduction = reduced(log.records, SCALA)
    assert removals(reduction) == {(P, 0, 0)}
    assert reduction.markers.to_pylist() == [{"producer_id": P, "log_offset": 1, "record_timestamp": NOW_MS, "type": "COMMIT"}]


@pytest.mark.parametrize(("era", "is_pending", "markers"), [(SCALA, {}, ["ABORT"]), (JAVA, {(P, 0): 1}, [])])
def test_markers_of_unknown_type_abort_in_scala_and_do_nothing_in_java(
    log: Log, era: str, is_pending: dict[tuple[int, int], int], markers: list[str]
) -> None:
    log.commit(0, 1, producer=P)
    log.marker(P, UNKNOWN_CONTROL_TYPE)
    reduction = reduced(log.records, era)
    assert pending(reduction) == is_pending
    assert reduction.markers["type"].to_pylist() == markers
    assert reduction.others.num_rows == 0


@pytest.mark.parametrize(("era", "is_pending"), [(SCALA, False), (JAVA, True)])
def test_a_producer_id_alone_makes_a_commit_pending_in_java_only(log: Log, era: str, is_pending: bool) -> None:
    record = log.commit(0, 1, producer=P)._replace(is_transactional=False)
    reduction = reduced([record], era)
    assert bool(pending(reduction)) is is_pending
    assert bool(committed(reduction)) is not is_pending


def test_an_era_without_transactions_takes_every_commit_at_once_and_hands_on_control_records(log: Log) -> None:
    log.commit(0, 1, producer=P, version=1)
    log.marker(P, ControlType.ABORT)
    reduction = reduced(log.records, "0.10")
    assert committed(reduction) == {0: 1}
    assert reduction.others["is_control"].to_pylist() == [True]


@both
def test_a_control_record_without_readable_type_is_handed_on(log: Log, era: str) -> None:
    log.commit(0, 1, producer=P)
    marker = log.marker(P)
    reduction = reduced([log.records[0], marker._replace(key=b"\0\0\0")], era)
    assert pending(reduction) == {(P, 0): 1}
    assert reduction.others["log_offset"].to_pylist() == [1]


def test_what_the_era_does_not_read_is_handed_on(log: Log) -> None:
    log.commit(0, 1, version=3)
    log.commit(0, 2, version=1)
    log.commit(0, 3, version=4)
    reduction = reduced(log.records, "1")
    assert committed(reduction) == {0: 2}
    assert reduction.others["log_offset"].to_pylist() == [0, 2]


@both
def test_history_counts_what_took_effect(log: Log, era: str) -> None:
    log.commit(0, 10)
    log.commit(0, 4, producer=P)
    log.commit(0, 99, producer=Q)
    log.marker(Q, ControlType.ABORT)
    log.marker(P)
    log.commit(0, 20)
    assert history(reduced(log.records, era)) == (3, 4, True, 10)


@both
def test_the_lowest_offset_of_a_rewind_is_one_that_went_back(log: Log, era: str) -> None:
    for offset in (10, 50, 30, 60, 40, 70):
        log.commit(0, offset)
    assert history(reduced(log.records, era)) == (6, 30, True, 10)


@both
def test_a_commit_after_a_removal_rewinds_nothing(log: Log, era: str) -> None:
    log.commit(0, 10)
    log.offset_tombstone(0)
    log.commit(0, 5)
    assert history(reduced(log.records, era)) == (2, 5, False, 10)


@both
def test_first_offset_is_unknown_when_a_removal_came_first(log: Log, era: str) -> None:
    log.offset_tombstone(0)
    log.commit(0, 5)
    assert history(reduced(log.records, era)) == (1, 5, False, None)
    assert history(reduced(log.records[:1], era)) == (0, None, False, None)


def test_topic_ids_are_learned_from_commits_that_never_take_effect_too(log: Log) -> None:
    old, new = UUID(int=1), UUID(int=2)
    log.commit(0, 1, version=4, topic_id=old)
    log.commit(1, 1, version=4, topic_id=old)
    log.commit(0, 1, version=4, topic_id=new, producer=P)
    log.marker(P, ControlType.ABORT)
    pairs = [(row["topic_id"], row["topic"]) for row in reduced(log.records, JAVA).topic_ids.to_pylist()]
    assert sorted(pairs) == [("AAAAAAAAAAAAAAAAAAAAAQ", "foo"), ("AAAAAAAAAAAAAAAAAAAAAg", "foo")]


def test_metadata_survives_its_buffer_and_swaps_between_pending_and_committed() -> None:
    texts = ["", "a", "b" * 20, "c" * 5000, "d" * 32767, "e" * 3]
    log = Log()
    for i, text in enumerate(texts * 3):
        value = OffsetCommitValue(i, metadata=text)
        log.append(Record(1, OffsetCommitKey("g", "t", i % 2), value, 3), producer=P if i % 3 else -1)
        if i % 5 == 4:
            log.marker(P)
    log.marker(P)
    whole = reduced(log.records, SCALA)
    assert reduced(log.records, SCALA, range(len(log.records))).commits == whole.commits
    (last, before) = (len(texts) * 3 - 1, len(texts) * 3 - 2)
    assert {row["partition"]: row["metadata"] for row in whole.commits.to_pylist()} == {
        last % 2: texts[last % 6],
        before % 2: texts[before % 6],
    }


@both
def test_grows_with_keys_producers_and_metadata(era: str) -> None:
    log = Log()
    for i in range(3000):
        value = OffsetCommitValue(i, metadata="m" * (i % 300))
        log.append(Record(1, OffsetCommitKey(f"group-{i % 7}", f"topic-{i}", i), value, 3), producer=i if i % 2 else -1)
    for i in range(1, 3000, 4):
        log.marker(i)
    reduction = reduced(log.records, era, [1000])
    ended = {i for i in range(3000) if i % 2 == 0 or i % 4 == 1}
    assert committed(reduction) == {i: i for i in ended}
    assert set(pending(reduction)) == {(i, i) for i in range(3000) if i not in ended}
    assert all(len(row["metadata"]) == row["partition"] % 300 for row in reduction.commits.to_pylist())
    assert sum(reduction.group_activity["upserts"].to_pylist()) == len(ended)


def test_finish_may_be_called_in_between() -> None:
    log = Log()
    log.commit(0, 1, version=4, topic_id=UUID(int=3))
    reducer = PartitionReducer(Era.named(JAVA), 0)
    reducer.add(columns_of(log.records, next_offset=1))
    first = reducer.finish()
    assert reducer.finish() == first
    more = log.commit(0, 2)
    reducer.add(columns_of([more], next_offset=2))
    last = reducer.finish()
    assert (committed(last), last.next_offset, last.records_read, last.topic_ids.num_rows) == ({0: 2}, 2, 2, 1)


def test_nothing_read_is_nothing_done() -> None:
    reduction = PartitionReducer(Era.named(JAVA), 3).finish()
    assert (reduction.partition, reduction.records_read, reduction.next_offset) == (3, 0, 0)
    assert reduction.commits.num_rows == reduction.group_activity.num_rows == reduction.others.num_rows == 0


def test_damages_of_the_log_are_kept() -> None:
    key, value = encode(Record(1, OffsetCommitKey("g", "t", 0), OffsetCommitValue(5), 3))
    batch = bytearray(write_batch([BatchRecord(0, NOW_MS, key, value)]))
    batch[-1] ^= 1
    columns = parse_columns(np.frombuffer(bytes(batch), np.uint8))
    reducer = PartitionReducer(Era.named(JAVA), 0)
    reducer.add(columns)
    assert reducer.finish().damages == columns.damages
    assert columns.damages


@pytest.mark.parametrize("version", ERA_OF_LOG)
def test_genuine_logs_reduce_to_what_they_load_to(version: str) -> None:
    offsets = load(version)[0].offsets
    records = log_records(version)
    found = {}
    for partition in {record.partition for record in records}:
        reduction = reduced([record for record in records if record.partition == partition], ERA_OF_LOG[version], [5, 50])
        for row in reduction.commits.to_pylist():
            found[row["group_id"], row["topic"], row["partition"]] = (row["committed_offset"], row["metadata"], row["log_offset"])
    assert found == {
        (group, *key): (commit.offset, commit.metadata, commit.log_offset)
        for group, commits in offsets.committed.items()
        for key, commit in commits.items()
    }
