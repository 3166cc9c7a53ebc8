"""The coordinator and its log: loading, fail-over, append errors, sweeps. Mirrors the live cases of `GroupMetadataManagerTest`
(Scala and Java) and `OffsetMetadataManagerTest`; each test names the cases it mirrors."""

import pytest
from coordinator_harness import CONSUMER, DELAY_MS, GROUP, LEADER, RANGE, TIMEOUT_MS, Harness, errors
from log_builder import Log

from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.offsets import OffsetCommitKey
from coordinator_core.codec.records import Record
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.coordinator_common.results import ShardStatus
from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.group_coordinator.group.states import ClassicGroupState
from coordinator_core.group_coordinator.result import CoordinatorResult
from coordinator_core.group_coordinator.shard import GroupCoordinatorShard
from coordinator_core.group_coordinator.timers import TimerKey, TimerKind
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import OffsetToCommit

EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState
FOO, BAR = TopicPartition("foo", 0), TopicPartition("bar", 0)
DAY_MS = 24 * 60 * 60 * 1000


# ---- loading and fail-over


def test_a_load_with_an_older_epoch_is_ignored(at: Harness) -> None:
    """testLoadOffsetsAndGroupIgnored"""
    shard = GroupCoordinatorShard(0, at.config, str)
    assert shard.begin_load(5, at.now_ms)
    shard.finish_load(at.now_ms)
    assert not shard.begin_load(5, at.now_ms)
    shard.unload(6, at.now_ms)
    assert not shard.begin_load(4, at.now_ms)
    assert (shard.epoch, shard.status) == (6, ShardStatus.UNLOADED)


def test_unloading_removes_the_groups(at: Harness) -> None:
    """testUnloadOffsetsAndGroup, testOnUnloaded"""
    at.stable_member()
    at.take(at.shard.unload(at.epoch, at.now_ms))
    assert at.heartbeat("m", 1) is ErrorCode.NOT_COORDINATOR
    assert (at.shard.context.groups, at.shard.next_deadline()) == ({}, None)


def test_an_unload_with_an_older_epoch_is_ignored(at: Harness) -> None:
    """testUnloadOffsetsAndGroupIgnored"""
    member_id = at.stable_member().member_id
    assert at.shard.unload(at.epoch - 1, at.now_ms) == CoordinatorResult()
    assert at.heartbeat(member_id, 1) is ErrorCode.NONE


def test_an_unload_without_epoch_keeps_the_last(at: Harness) -> None:
    """testUnloadOffsetsAndGroupIgnoredAfterStopReplica"""
    at.stable_member()
    shard, epoch = at.shard, at.epoch
    shard.unload(None, at.now_ms)
    assert (shard.status, shard.epoch) == (ShardStatus.UNLOADED, epoch)
    assert not shard.begin_load(epoch, at.now_ms)
    assert shard.begin_load(epoch + 1, at.now_ms)
    shard.replay(at.logs[at.partition])
    shard.finish_load(at.now_ms)
    assert at.state is STABLE


def test_a_group_is_made_once(at: Harness) -> None:
    """testAddGroup"""
    at.join()
    first = at.group()
    at.join()
    assert at.group() is first


def test_whoever_waits_is_told_when_the_partition_goes() -> None:
    """testClassicGroupOnUnloadedEmptyAndPreparingRebalance, testClassicGroupOnUnloadedCompletingRebalance,
    testCompleteAllJoinFutures, testCompleteAllSyncFutures; and requests that wait for the log."""
    at = Harness("4")
    first, second = at.two_joined(at.stable_member().member_id)
    at.hold = True
    commit = at.commit({FOO: 1}, group="simple") if at.coordinator.partition_for("simple") == at.partition else None
    syncing = [at.sync(second.member_id, 2), at.sync(first.member_id, 2)]
    other_groups = [name for name in (f"g{n}" for n in range(9)) if at.coordinator.partition_for(name) == at.partition]
    joining = at.join(group=other_groups[0])
    required = at.join(group=other_groups[1], known=True)
    deleted_later = at.commit({FOO: 1}, group=other_groups[2])
    at.take(at.shard.unload(at.epoch + 1, at.now_ms))
    waiting = [*syncing, joining, required]
    assert [call.error for call in waiting] == [ErrorCode.NOT_COORDINATOR] * 4
    for call in (commit, deleted_later):
        assert call is None or errors(call.response) == {ErrorCode.NOT_COORDINATOR}
    at.release()
    assert at.shard.next_deadline() is None


def test_members_of_a_loaded_group_have_a_session() -> None:
    """testOnLoadedSchedulesClassicGroupMemberHeartbeats, testOnLoaded"""
    at = Harness("4")
    generation, leader, follower = at.static_pair()
    at.crash()
    group = at.group()
    assert (group.state, group.generation, group.leader) == (STABLE, generation, leader)
    assert at.sync(follower, generation).response.assignment == b"of follower"
    timers = at.shard.context.timers
    assert all(TimerKey(TimerKind.HEARTBEAT, GROUP, member_id) in timers for member_id in (leader, follower))
    at.advance(TIMEOUT_MS + 1)
    assert at.state is EMPTY


def test_a_loaded_group_that_is_too_large_rebalances() -> None:
    """testOnLoadedExceedGroupMaxSizeTriggersRebalance"""
    at = Harness("4")
    at.static_pair()
    small = Harness("4", group_max_size=1)
    small.logs = at.logs
    small.lead(small.partition)
    assert small.state is PREPARING_REBALANCE


# ---- records


def test_the_record_of_a_new_group(at: Harness) -> None:
    """testGenerateRecordsOnNewClassicGroup: the Java coordinator writes a record for a group that a join creates."""
    assert at.join(known=True).error is ErrorCode.MEMBER_ID_REQUIRED
    record = Record(2, GroupMetadataKey(GROUP), GroupMetadataValue("", 0, None, None, at.now_ms), 3)
    assert at.written == ([record] if at.era == "4" else [])


def test_a_new_group_that_the_log_does_not_take() -> None:
    """testGenerateRecordsOnNewClassicGroupFailureTransformsError, testJoinGroupAppendErrorConversion"""
    for known in (True, False):
        at = Harness("4")
        at.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert at.join(known=known).error is ErrorCode.NOT_COORDINATOR
        at.append_error = None
        assert at.describe().state == "Dead"


def test_the_record_of_a_generation(at: Harness) -> None:
    """testStoreNonEmptyGroup"""
    joined = at.stable_member(instance=LEADER)
    member = MemberMetadata(joined.member_id, LEADER, "clientId", "clientHost", TIMEOUT_MS, TIMEOUT_MS, b"", b"")
    value = GroupMetadataValue(CONSUMER, 1, "range", joined.member_id, at.now_ms, (member,))
    assert at.written[-1] == Record(2, GroupMetadataKey(GROUP), value, 3)


def test_the_record_of_a_group_that_became_empty(at: Harness) -> None:
    """testStoreEmptyGroup: of the live group; the protocol type is kept."""
    at.leave(at.stable_member().member_id)
    value = GroupMetadataValue(CONSUMER, 2, None, None, at.now_ms)
    assert at.written[-1] == Record(2, GroupMetadataKey(GROUP), value, 3)


SCALA = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
}
JAVA = SCALA | {
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


@pytest.mark.parametrize("error", SCALA)
def test_errors_when_an_assignment_is_stored(at: Harness, error: ErrorCode) -> None:
    """testStoreGroupErrorMapping, testStoreNonEmptyGroupWhenCoordinatorHasMoved,
    testSyncGroupAsLeaderAppendFailureTransformsError; after an error the group rebalances again."""
    joined = at.joined()
    at.append_error = None if error is ErrorCode.NONE else error
    synced = at.sync(joined.member_id, 1, {joined.member_id: b"assigned"}).response
    assert synced.error is (SCALA if at.era == "3" else JAVA)[error]
    assert at.state is (STABLE if error is ErrorCode.NONE else PREPARING_REBALANCE)
    assert at.group().member(joined.member_id).assignment == (b"assigned" if error is ErrorCode.NONE else b"")


def offset_error(era: str, error: ErrorCode) -> ErrorCode:
    too_large = ErrorCode.INVALID_COMMIT_OFFSET_SIZE if era == "3" else ErrorCode.UNKNOWN_SERVER_ERROR
    timed_out = ErrorCode.REQUEST_TIMED_OUT if era == "3" else ErrorCode.COORDINATOR_NOT_AVAILABLE
    mapped = (SCALA if era == "3" else JAVA)[error]
    return {ErrorCode.UNKNOWN_SERVER_ERROR: too_large, SCALA[ErrorCode.REQUEST_TIMED_OUT]: timed_out}.get(mapped, mapped)


@pytest.mark.parametrize("error", [error for error in SCALA if error is not ErrorCode.NONE])
def test_errors_when_offsets_are_committed(at: Harness, error: ErrorCode) -> None:
    """testCommitOffsetFailure, testCommitOffsetWhenCoordinatorHasMoved; the offsets cannot be fetched."""
    at.append_error = error
    assert errors(at.commit({FOO: 37}).response) == {offset_error(at.era, error)}
    at.append_error = None
    assert at.fetched(FOO) == {FOO: -1}
    assert at.shard.context.in_flight.of(GROUP) == frozenset()


def test_a_transactional_commit_that_the_log_does_not_take(at: Harness) -> None:
    """testTransactionalCommitOffsetAppendFailure"""
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert errors(at.commit_in_transaction(1, {FOO: 37}).response) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    at.append_error = None
    assert at.shard.context.state.pending(GROUP) == {}
    assert at.fetched(FOO) == {FOO: -1}


def test_metadata_that_is_too_long_for_one_of_two(at: Harness) -> None:
    """testOffsetMetadataTooLarge, testOffsetMetadataTooLargePartialFailure, testCommitOffsetPartialFailure,
    testTransactionalCommitOffsetWithOffsetMetadataTooLargePartialFailure"""
    long = OffsetToCommit(37, metadata="m" * 4097)
    only = at.commit({FOO: long}).response
    assert (only.errors, at.fetched()) == ({FOO: ErrorCode.OFFSET_METADATA_TOO_LARGE}, {})
    for send in (at.commit, lambda offsets: at.commit_in_transaction(1, offsets)):
        both = send({FOO: long, BAR: 38}).response
        assert both.errors == {FOO: ErrorCode.OFFSET_METADATA_TOO_LARGE, BAR: ErrorCode.NONE}
    assert at.fetch(BAR, stable=False).offsets[BAR].offset == 38
    assert at.shard.context.state.pending(GROUP).keys() == {BAR}


def test_what_no_record_can_hold_is_an_append_that_failed(at: Harness) -> None:
    """Beside the cases: newer protocol versions accept longer strings than the records of the log."""
    too_large = ErrorCode.INVALID_COMMIT_OFFSET_SIZE if at.era == "3" else ErrorCode.UNKNOWN_SERVER_ERROR
    long = "t" * 40_000
    assert at.commit({TopicPartition(long, 0): 1, FOO: 1}).response.errors == {
        TopicPartition(long, 0): too_large,
        FOO: too_large,
    }
    assert errors(at.commit({FOO: 2**63}, group=GROUP).response) == {too_large}
    joined = at.joined(instance=long)
    assert at.sync(joined.member_id, 1).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert at.state is PREPARING_REBALANCE
    assert at.shard.context.in_flight.of(GROUP) == frozenset()


def test_an_empty_group_that_the_log_does_not_take_stays_empty(at: Harness) -> None:
    """Beside the cases: its generation does not fall, and the next record of the group has the same one."""
    joined = at.stable_member()
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    at.leave(joined.member_id)
    at.append_error = None
    assert (at.state, at.group().generation) == (EMPTY, 2)
    assert at.loaded().groups()[GROUP].state == "Stable"
    assert at.stable_member().generation == 3


# ---- the sweep


def test_the_sweep_comes_once_per_interval(at: Harness) -> None:
    """testScheduleCleanupGroupMetadata"""
    timers = at.shard.context.timers
    interval_ms = at.config.offsets_retention_check_interval_ms
    key = TimerKey(TimerKind.SWEEP)
    assert timers.deadline(key) == at.now_ms + interval_ms
    at.advance(interval_ms)
    assert timers.deadline(key) == at.now_ms + interval_ms


def test_what_a_sweep_removes_of_a_group_that_became_empty(at: Harness) -> None:
    """testGroupMetadataRemoval, testExpireOffset, testOffsetExpirationCondition: of the live group, with the
    records of the era."""
    joined = at.stable_member()
    at.commit({FOO: 1}, joined.member_id, 1)
    at.advance(DAY_MS)
    assert at.state is EMPTY
    emptied_at = at.group().state_timestamp or 0
    at.take(at.shard.sweep(emptied_at + 7 * DAY_MS - 1))
    assert at.fetched() == {FOO: 1}
    at.take(at.shard.sweep(emptied_at + 7 * DAY_MS))
    assert at.written[-2:] == [
        Record(1, OffsetCommitKey(GROUP, *FOO), None, None),
        Record(2, GroupMetadataKey(GROUP), None, None),
    ]
    assert (at.describe().state, dict(at.loaded().groups())) == ("Dead", {})


def test_what_a_sweep_removes_of_a_simple_group(at: Harness) -> None:
    """testExpireGroupWithOffsetsOnly: the Scala coordinator writes no tombstone for a group that never had a record."""
    at.commit({FOO: 1})
    at.take(at.shard.sweep(at.now_ms + 7 * DAY_MS))
    kinds = [record.record_type for record in at.written if record.value is None]
    assert kinds == ([1] if at.era == "3" else [1, 2])
    assert at.describe().state == "Dead"


def test_a_sweep_spares_what_is_under_way(at: Harness) -> None:
    """testCleanupExpiredOffsetsWithPendingTransactionalOffsets, and a commit that the log has not acknowledged yet."""
    at.commit({FOO: 1})
    at.now_ms += 8 * DAY_MS
    at.hold = True
    moving = at.commit({FOO: 2})
    at.take(at.shard.sweep(at.now_ms))
    at.release()
    assert (errors(moving.response), at.fetched()) == ({ErrorCode.NONE}, {FOO: 2})
    at.commit_in_transaction(1, {BAR: 3})
    at.take(at.shard.sweep(at.now_ms + 8 * DAY_MS))
    assert at.describe().state == "Empty"


def test_a_group_in_use_keeps_its_offsets(at: Harness) -> None:
    """testOffsetExpirationOfActiveGroupSemantics: of the live group, while it rebalances."""
    joined = at.stable_member(protocols=RANGE)
    at.commit({FOO: 1}, joined.member_id, 1)
    at.join()
    assert at.state is PREPARING_REBALANCE
    at.take(at.shard.sweep(at.now_ms + 30 * DAY_MS))
    assert at.fetched() == {FOO: 1}


# ---- configuration


def test_configuration_has_bounds() -> None:
    """Beside the cases: errors name the key, the value and the bound."""
    assert CoordinatorConfig().group_max_session_timeout_ms == 1_800_000
    for changes, words in (
        ({"era": "0.8"}, "era '0.8'"),
        ({"group_max_size": 0}, "group_max_size is 0: use 1–"),
        ({"group_min_session_timeout_ms": 2_000_000}, "is above group_max_session_timeout_ms 1800000"),
    ):
        with pytest.raises(ValueError, match=words):
            CoordinatorConfig(**changes)


def test_delay_of_the_first_rebalance_is_configured() -> None:
    """Beside the cases: 0 means no delay."""
    at = Harness("4", group_initial_rebalance_delay_ms=0)
    call = at.join()
    at.advance(0)
    assert (call.error, DELAY_MS) == (ErrorCode.NONE, 50)


def test_groups_of_other_types_are_left_alone() -> None:
    """Beside the cases: a consumer group (KIP-848) is loaded, listed and fetched from; classic members cannot join it."""
    at = Harness("4")
    log = Log(at.partition)
    log.commit(0, 5, group=GROUP, version=4)
    log.consumer_member(group=GROUP)
    at.logs[at.partition] = log.records
    at.lead(at.partition)
    assert at.join().error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert at.join("known").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert errors(at.commit({FOO: 1}).response) == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert at.fetched() == {FOO: 5}
    assert [(group.group_type, group.state) for group in at.list().groups] == [("consumer", "Stable")]
    assert (at.describe().state, at.delete().error) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    at.take(at.shard.sweep(at.now_ms + 30 * DAY_MS))
    assert at.fetched() == {FOO: 5}
