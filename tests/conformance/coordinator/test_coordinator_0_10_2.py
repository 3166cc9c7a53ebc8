"""The cases of the `GroupMetadataManagerTest` of 0.10.2, run as that coordinator: loading, storing and expiring, before
transactions and KIP-211. Each test names the cases that it mirrors."""

import pytest
from coordinator_harness import GROUP, Harness, errors
from expecting import expect
from log_builder import Log, member

from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.offsets import OffsetCommitKey
from coordinator_core.codec.records import Record
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.group.states import ClassicGroupState
from coordinator_core.protocol.error_code import ErrorCode

EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState
FOO_0, FOO_1 = TopicPartition("foo", 0), TopicPartition("foo", 1)
COMMITTED = {FOO_0: 23, FOO_1: 455, TopicPartition("bar", 0): 8992}
GROUP_TOMBSTONE = Record(2, GroupMetadataKey(GROUP), None, None)
#: How 0.10.2 maps errors of the log: when a group is stored, and when offsets are.
GROUP_ERRORS = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.KAFKA_STORAGE_ERROR,
}
OFFSET_ERRORS = GROUP_ERRORS | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}


@pytest.fixture
def at() -> Harness:
    return Harness("0.10")


@pytest.fixture
def log(at: Harness) -> Log:
    return Log(at.partition)


def load(at: Harness, log: Log) -> None:
    at.logs[at.partition] = log.records
    at.lead(at.partition)


def commit_all(log: Log) -> None:
    for partition, offset in COMMITTED.items():
        log.commit(partition.partition, offset, group=GROUP, topic=partition.topic, version=1)


def store_group(log: Log) -> None:
    log.group([member("m1")], group=GROUP, version=1, leader="m1")


def removed(at: Harness, before: int) -> list[Record]:
    """The records that a sweep wrote, which must be tombstones."""
    assert all(record.value is None for record in at.written[before:])
    return at.written[before:]


def test_offsets_without_a_group(at: Harness, log: Log) -> None:
    """testLoadOffsetsWithoutGroup"""
    commit_all(log)
    load(at, log)
    assert (at.state, at.group().protocol_type, at.fetched()) == (EMPTY, None, COMMITTED)


def test_offsets_with_tombstones(at: Harness, log: Log) -> None:
    """testLoadOffsetsWithTombstones"""
    commit_all(log)
    log.offset_tombstone(1, group=GROUP, topic="foo")
    load(at, log)
    assert (at.state, len(at.fetched()), at.fetched(FOO_1)) == (EMPTY, 2, {FOO_1: -1})


def test_offsets_and_group(at: Harness, log: Log) -> None:
    """testLoadOffsetsAndGroup; the session of the member begins with the load."""
    commit_all(log)
    store_group(log)
    load(at, log)
    assert (at.state, at.group().leader, [m.member_id for m in at.group()]) == (STABLE, "m1", ["m1"])
    assert at.fetched() == COMMITTED
    at.advance(10_001)
    assert (at.state, at.fetched()) == (EMPTY, COMMITTED)


def test_a_group_with_a_tombstone(at: Harness, log: Log) -> None:
    """testLoadGroupWithTombstone"""
    store_group(log)
    log.group_tombstone(GROUP)
    load(at, log)
    assert (at.shard.context.find(GROUP), at.describe().state) == (None, "Dead")


def test_offsets_behind_the_tombstone_of_a_group(at: Harness, log: Log) -> None:
    """testOffsetWriteAfterGroupRemoved"""
    store_group(log)
    log.group_tombstone(GROUP)
    commit_all(log)
    load(at, log)
    assert (at.state, at.fetched()) == (EMPTY, COMMITTED)


def test_a_group_is_made_once(at: Harness) -> None:
    """testAddGroup"""
    at.commit({FOO_0: 1})
    group = at.group()
    at.commit({FOO_0: 2})
    assert at.group() is group


def test_the_record_of_a_group_that_became_empty(at: Harness) -> None:
    """testStoreEmptyGroup"""
    at.leave(at.stable_member().member_id)
    assert at.written[-1] == Record(2, GroupMetadataKey(GROUP), GroupMetadataValue("consumer", 2, None, None), 1)
    assert at.state is EMPTY


@pytest.mark.parametrize("error", GROUP_ERRORS)
def test_errors_when_a_group_is_stored(at: Harness, error: ErrorCode) -> None:
    """testStoreGroupErrorMapping, testStoreNonEmptyGroupWhenCoordinatorHasMoved"""
    joined = at.join().response
    at.append_error = None if error is ErrorCode.NONE else error
    assert at.sync(joined.member_id, 1, {joined.member_id: b"assigned"}).error is GROUP_ERRORS[error]
    assert at.state is (STABLE if error is ErrorCode.NONE else PREPARING_REBALANCE)


def test_the_record_of_a_generation(at: Harness) -> None:
    """testStoreNonEmptyGroup; value version 1 has no state timestamp."""
    joined = at.join(rebalance_ms=700).response
    assert at.sync(joined.member_id, 1, {joined.member_id: b"assigned"}).error is ErrorCode.NONE
    stored = MemberMetadata(joined.member_id, None, "clientId", "clientHost", 700, 500, b"", b"assigned")
    value = GroupMetadataValue("consumer", 1, "range", joined.member_id, -1, (stored,))
    assert at.written == [Record(2, GroupMetadataKey(GROUP), value, 1)]


def test_a_commit_without_a_generation(at: Harness) -> None:
    """testCommitOffset; pending until the log has it."""
    at.hold = True
    call = at.commit({FOO_0: 37})
    assert (at.shard.context.in_flight.of(GROUP), at.fetched(FOO_0)) == (frozenset({FOO_0}), {FOO_0: -1})
    at.release()
    assert (errors(call.response), at.fetched(FOO_0)) == ({ErrorCode.NONE}, {FOO_0: 37})


@pytest.mark.parametrize("error", [error for error in OFFSET_ERRORS if error is not ErrorCode.NONE])
def test_errors_when_offsets_are_committed(at: Harness, error: ErrorCode) -> None:
    """testCommitOffsetFailure, testCommitOffsetWhenCoordinatorHasMoved; no offset stays pending or is committed."""
    at.append_error = error
    assert errors(at.commit({FOO_0: 37}).response) == {OFFSET_ERRORS[error]}
    at.append_error = None
    assert (at.shard.context.in_flight.of(GROUP), at.fetched(FOO_0)) == (frozenset(), {FOO_0: -1})


def test_one_of_two_offsets_expires(at: Harness) -> None:
    """testExpireOffset"""
    at.commit({FOO_0: 37}, retention_ms=1)
    at.commit({FOO_1: 37}, retention_ms=3)
    before = len(at.written)
    at.take(at.shard.sweep(at.now_ms + 2))
    assert [expect(OffsetCommitKey, record.key).partition for record in removed(at, before)] == [0]
    assert (at.state, at.fetched(FOO_0, FOO_1)) == (EMPTY, {FOO_0: -1, FOO_1: 37})


def test_a_group_without_offsets_goes(at: Harness) -> None:
    """testGroupMetadataRemoval, testGroupMetadataRemovalWithLogAppendTime"""
    at.leave(at.stable_member().member_id)
    before = len(at.written)
    at.take(at.shard.sweep(at.now_ms))
    assert removed(at, before) == [GROUP_TOMBSTONE]
    assert (at.shard.context.find(GROUP), at.fetched(FOO_0)) == (None, {FOO_0: -1})


def test_a_group_of_offsets_alone_goes_without_a_tombstone_of_its_own(at: Harness) -> None:
    """testExpireGroupWithOffsetsOnly"""
    at.commit({FOO_0: 37}, retention_ms=1)
    at.commit({FOO_1: 37}, retention_ms=3)
    before = len(at.written)
    at.take(at.shard.sweep(at.now_ms + 4))
    gone = [(record.record_type, expect(OffsetCommitKey, record.key).partition) for record in removed(at, before)]
    assert gone == [(1, 0), (1, 1)]
    assert (at.shard.context.find(GROUP), at.fetched(FOO_0, FOO_1)) == (None, {FOO_0: -1, FOO_1: -1})


def test_offsets_of_a_group_in_use_expire(at: Harness) -> None:
    """testExpireOffsetsWithActiveGroup"""
    joined = at.stable_member()
    at.commit({FOO_0: 37}, joined.member_id, 1, retention_ms=1)
    at.commit({FOO_1: 37}, joined.member_id, 1, retention_ms=3)
    at.take(at.shard.sweep(at.now_ms + 4))
    assert (at.state, at.fetched(FOO_0, FOO_1)) == (STABLE, {FOO_0: -1, FOO_1: -1})
