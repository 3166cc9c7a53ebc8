"""Differences between the older coordinators, each compared with its predecessor and successor; after `GroupCoordinator.scala` of
0.10.0, 0.10.2, 2.0 and 2.3."""

from typing import Any

import pytest
from coordinator_harness import CONSUMER, GROUP, OTHER_GROUP, RANGE, RANGE_OR_ROUND_ROBIN, TIMEOUT_MS, Harness, errors
from expecting import expect

from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue
from coordinator_core.codec.messages.offsets import OffsetCommitValue
from coordinator_core.codec.records import Record
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.behaviour import BEHAVIOURS
from coordinator_core.group_coordinator.config import ERA_DEFAULTS, CoordinatorConfig
from coordinator_core.group_coordinator.group.states import ClassicGroupState
from coordinator_core.group_coordinator.shard import GroupCoordinatorShard
from coordinator_core.log.entries import ControlType
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from coordinator_core.protocol.offsets import OffsetFetchRequest, OffsetToCommit
from coordinator_core.state.era import ERAS

EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState
ALL = list(BEHAVIOURS)
SCALA_TO_2_0, SCALA_TO_2_3 = ["0.9", "0.10", "1"], ["0.9", "0.10", "1", "2"]
FOO = TopicPartition("foo", 0)
DAY_MS = 24 * 60 * 60 * 1000

eras = pytest.mark.parametrize("era", ALL)


def completing(at: Harness, **more: Any) -> tuple[str, int]:
    """A group whose leader has yet to assign: its member and its generation."""
    joined = at.joined(**more)
    assert at.state is COMPLETING_REBALANCE
    return joined.member_id, joined.generation


def test_every_era_has_all_tables() -> None:
    assert list(ERAS) == list(BEHAVIOURS) == list(ERA_DEFAULTS)


@pytest.mark.parametrize(
    ("era", "session_ms", "delay_ms", "retention_days"),
    [
        ("0.9", 30_000, 0, 1),
        ("0.10", 300_000, 0, 1),
        ("1", 300_000, 3_000, 7),
        ("2", 1_800_000, 3_000, 7),
        ("3", 1_800_000, 3_000, 7),
        ("4", 1_800_000, 3_000, 7),
    ],
)
def test_defaults_of_their_time(era: str, session_ms: int, delay_ms: int, retention_days: int) -> None:
    config = CoordinatorConfig(era)
    assert (config.group_min_session_timeout_ms, config.group_max_session_timeout_ms) == (6_000, session_ms)
    assert config.group_initial_rebalance_delay_ms == delay_ms
    assert config.offsets_retention_ms == retention_days * DAY_MS == ERAS[era].default_retention_ms
    assert CoordinatorConfig(era, offsets_retention_minutes=5).offsets_retention_ms == 300_000


# ---- records


@pytest.mark.parametrize(("era", "version"), [("0.9", 0), ("0.10", 1), ("1", 1), ("2", 3), ("3", 3), ("4", 3)])
def test_the_version_of_group_records(era: str, version: int) -> None:
    """A member of 0.9 uses its session timeout as rebalance timeout, also when loaded."""
    at = Harness(era)
    joined = at.stable_member(rebalance_ms=700)
    record = at.written[-1]
    timeout = {0: -1}.get(version, 700)
    assert record.value_version == version
    value = expect(GroupMetadataValue, record.value)
    assert [member.rebalance_timeout for member in value.members] == [timeout]
    assert (value.current_state_timestamp == -1) == (version < 2)
    at.crash()
    assert at.group().member(joined.member_id).rebalance_timeout_ms == (TIMEOUT_MS if era == "0.9" else 700)


@pytest.mark.parametrize(("era", "version"), [("0.9", 1), ("0.10", 1), ("1", 1), ("2", 3), ("3", 3), ("4", 4)])
@pytest.mark.parametrize("transactional", [False, True])
def test_the_version_of_commits_and_when_they_expire(era: str, version: int, transactional: bool) -> None:
    """Up to 2.0, each commit records its expiry: after the retention of the broker unless the commit names its own."""
    at = Harness(era)
    if not transactional:
        at.commit({FOO: OffsetToCommit(5, 2, None)})
    elif era in ("0.9", "0.10"):
        return
    else:
        at.commit_in_transaction(1, {FOO: OffsetToCommit(5, 2, None)})
    record = at.written[-1]
    expires = at.now_ms + at.config.offsets_retention_ms if version == 1 else -1
    assert record.value_version == version
    assert record.value == OffsetCommitValue(5, 2 if version >= 3 else -1, "", at.now_ms, expires)


@eras
def test_a_retention_of_its_own(era: str) -> None:
    """v2–v4 of OffsetCommit; up to 2.0 offsets expired the millisecond after, from 2.1 on with the millisecond."""
    at = Harness(era)
    at.commit({FOO: 5}, retention_ms=1000)
    assert at.written[-1].value == OffsetCommitValue(5, -1, "", at.now_ms, at.now_ms + 1000)
    at.take(at.shard.sweep(at.now_ms + 999))
    assert at.fetched(FOO) == {FOO: 5}
    at.take(at.shard.sweep(at.now_ms + 1000))
    assert at.fetched(FOO) == {FOO: 5 if era in SCALA_TO_2_0 else -1}
    at.take(at.shard.sweep(at.now_ms + 1001))
    assert at.fetched(FOO) == {FOO: -1}


@eras
def test_the_offsets_of_a_group_in_use(era: str) -> None:
    """Up to 2.0 they expire like all others."""
    at = Harness(era, group_max_session_timeout_ms=2**31 - 1)
    joined = at.stable_member(session_ms=2**31 - 1)
    at.commit({FOO: 5}, joined.member_id, 1)
    at.take(at.shard.sweep(at.now_ms + at.config.offsets_retention_ms + 1))
    assert at.fetched(FOO) == {FOO: -1 if era in SCALA_TO_2_0 else 5}


# ---- groups without members


@eras
def test_the_last_member_leaves(era: str) -> None:
    """In 0.9 the group is deleted with its last member, and its tombstone is written immediately; its offsets are kept."""
    at = Harness(era)
    joined = at.stable_member()
    at.commit({FOO: 5}, joined.member_id, 1)
    at.leave(joined.member_id)
    if era == "0.9":
        assert at.written[-1] == Record(2, GroupMetadataKey(GROUP), None, None)
        assert (at.shard.context.find(GROUP), at.describe().state, at.list().groups) == (None, "Dead", ())
        assert errors(at.commit({FOO: 6}, "", 1).response) == {ErrorCode.ILLEGAL_GENERATION}
    else:
        assert at.written[-1].value is not None
        assert (at.state, at.group().generation) == (EMPTY, 2)
    assert at.fetched(FOO) == {FOO: 5}
    at.crash()
    assert at.joined().generation == (1 if era == "0.9" else 3)


def test_a_tombstone_that_the_log_refuses() -> None:
    """0.9: the group is not restored with its members; the next sweep writes the tombstone again."""
    at = Harness("0.9")
    joined = at.stable_member()
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    at.leave(joined.member_id)
    at.append_error = None
    assert at.heartbeat(joined.member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    at.take(at.shard.sweep(at.now_ms))
    assert at.written[-2:] == [Record(2, GroupMetadataKey(GROUP), None, None)] * 2
    assert at.shard.context.find(GROUP) is None


@eras
def test_a_commit_without_group_makes_one(era: str) -> None:
    """Not in 0.9, where offsets are independent of groups."""
    at = Harness(era)
    assert errors(at.commit({FOO: 5}).response) == {ErrorCode.NONE}
    assert at.fetched(FOO) == {FOO: 5}
    assert [group.group_id for group in at.list().groups] == ([] if era == "0.9" else [GROUP])


@eras
def test_a_dead_group(era: str) -> None:
    """UNKNOWN_MEMBER_ID up to 2.0, COORDINATOR_NOT_AVAILABLE since then."""
    at = Harness(era)
    expected = ErrorCode.UNKNOWN_MEMBER_ID if era in SCALA_TO_2_0 else ErrorCode.COORDINATOR_NOT_AVAILABLE
    joined = at.stable_member()
    at.leave(joined.member_id)
    at.hold = True
    at.take(at.shard.sweep(at.now_ms))
    if era == "0.9":
        at.hold = False
        rejoined = at.stable_member()
        at.hold = True
        at.leave(rejoined.member_id)
    assert at.state is DEAD
    assert at.heartbeat("unknown", 1) is expected
    assert at.sync("unknown", 1).error is expected
    assert at.leave("unknown").error_of_single is expected
    assert errors(at.commit({FOO: 1}).response) == {expected}
    refused = at.join().response
    assert (refused.error, refused.generation) == (expected, 0 if era in SCALA_TO_2_0 else -1)


# ---- members


@eras
def test_the_first_rebalance(era: str) -> None:
    """Completed immediately in 0.9 and 0.10; delayed since 0.11 (KIP-134)."""
    at = Harness(era)
    call = at.join()
    assert call.answered == (era in ("0.9", "0.10"))


@pytest.mark.parametrize("era", ["1", "2", "3", "4"])
def test_the_delay_of_a_group_that_had_generations_before(era: str) -> None:
    """New members extend it in the Java coordinator only."""
    at = Harness(era)
    at.leave(at.stable_member().member_id)
    first = at.join()
    at.advance(30)
    at.join()
    at.advance(21)
    assert first.answered == (era != "4")


@pytest.mark.parametrize(
    ("era", "stale", "unknown"),
    [
        ("0.9", ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS),
        ("0.10", ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID),
        ("1", ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID),
        ("2", ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID),
        ("3", ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID),
        ("4", ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_heartbeats_while_the_leader_assigns(era: str, stale: ErrorCode, unknown: ErrorCode) -> None:
    """Up to 2.3 the response is REBALANCE_IN_PROGRESS, and the session is not extended."""
    at = Harness(era)
    member_id, generation = completing(at, rebalance_ms=10_000)
    assert at.heartbeat(member_id, generation + 1) is stale
    assert at.heartbeat("unknown", generation) is unknown
    at.advance(TIMEOUT_MS - 100)
    expected = ErrorCode.REBALANCE_IN_PROGRESS if era in SCALA_TO_2_3 else ErrorCode.NONE
    assert at.heartbeat(member_id, generation) is expected
    at.advance(101)
    found = at.shard.context.find(GROUP)
    assert (found is not None and member_id in found) == (era not in SCALA_TO_2_3)


@eras
def test_heartbeats_while_members_join(era: str) -> None:
    """They extend the session, except in 0.9."""
    at = Harness(era)
    joined = at.stable_member(rebalance_ms=10_000)
    at.join(session_ms=10_000)
    at.advance(TIMEOUT_MS - 100)
    assert at.heartbeat(joined.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    at.advance(101)
    assert (joined.member_id in at.group()) == (era != "0.9")


@eras
def test_a_parked_join_of_a_new_member(era: str) -> None:
    """It keeps the member without limit up to 2.0, and for five minutes since then."""
    at = Harness(era, group_max_session_timeout_ms=1_000_000)
    old = at.stable_member(session_ms=1_000_000, rebalance_ms=1_000_000)
    call = at.join(rebalance_ms=1_000_000)
    at.advance(300_000)
    assert call.answered == (era not in SCALA_TO_2_0)
    assert old.member_id in at.group()


@eras
def test_a_member_that_does_not_sync(era: str) -> None:
    """Up to 2.3 it stays until its session ends; later on it must sync within the rebalance timeout (KAFKA-12890)."""
    at = Harness(era)
    member_id, _ = completing(at, session_ms=10_000)
    at.advance(TIMEOUT_MS)
    assert (member_id in at.group()) == (era in SCALA_TO_2_3)


@eras
def test_timeouts_of_a_member_that_joins_again(era: str) -> None:
    """Up to 2.3 a member keeps the timeouts of its first JoinGroup."""
    at = Harness(era)
    joined = at.stable_member()
    at.join(joined.member_id, session_ms=400, rebalance_ms=900)
    member = at.group().member(joined.member_id)
    changed = (400, 900) if era in ("3", "4") else (TIMEOUT_MS, TIMEOUT_MS)
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == changed


@eras
def test_the_size_of_a_group(era: str) -> None:
    """Groups have no size limit up to 2.1 (KIP-389)."""
    at = Harness(era, group_max_size=1)
    at.stable_member()
    call = at.join()
    assert (call.answered and call.error is ErrorCode.GROUP_MAX_SIZE_REACHED) == (era not in SCALA_TO_2_0)


def test_a_group_that_is_too_large_in_2_3() -> None:
    """Members that have not rejoined are removed; those that have stay, even above the limit."""
    at = Harness("2")
    first = at.stable_member()
    at.two_joined(first.member_id)
    members = [member.member_id for member in at.group()]
    at.sync(members[0], 2, {})
    small = Harness("2", group_max_size=1)
    small.logs = at.logs
    small.lead(small.partition)
    assert small.state is PREPARING_REBALANCE
    assert small.join(members[0]).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    small.join(members[1])
    assert [member.member_id for member in small.group()] == members[1:]


# ---- responses


@pytest.mark.parametrize(("era", "name"), [("0.9", "AwaitingSync"), ("0.10", "AwaitingSync"), ("1", "CompletingRebalance")])
def test_the_state_that_was_renamed(era: str, name: str) -> None:
    at = Harness(era)
    completing(at)
    assert (at.describe().state, at.list().groups[0].state) == (name, name)


@eras
def test_errors_of_joins_have_a_generation(era: str) -> None:
    """Generation 0 up to 2.0, -1 since then."""
    at = Harness(era)
    refused = [at.join(session_ms=1).response, at.join("unknown").response, at.join(group="").response]
    assert [response.error for response in refused] == [
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.INVALID_GROUP_ID,
    ]
    assert {response.generation for response in refused} == {0 if era in SCALA_TO_2_0 else -1}


@eras
def test_empty_group_ids(era: str) -> None:
    """Up to 0.10 only JoinGroup rejects them."""
    at = Harness(era)
    empty = at.coordinator.partition_for("")
    at.partition = empty
    at.lead(empty)
    only_joins = era in ("0.9", "0.10")
    assert at.join(group="").error is ErrorCode.INVALID_GROUP_ID
    assert at.heartbeat("m", 1, group="") is (ErrorCode.UNKNOWN_MEMBER_ID if only_joins else ErrorCode.INVALID_GROUP_ID)
    assert at.sync("m", 1, group="").error is (ErrorCode.UNKNOWN_MEMBER_ID if only_joins else ErrorCode.INVALID_GROUP_ID)
    assert errors(at.commit({FOO: 1}, group="").response) == {ErrorCode.NONE}


@pytest.mark.parametrize(
    ("era", "join", "sync", "heartbeat"),
    [
        ("0.9", ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
        ("0.10", ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
        ("1", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NONE),
        ("2", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NONE),
        ("3", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NONE),
        ("4", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE),
    ],
)
def test_while_a_group_is_loaded(era: str, join: ErrorCode, sync: ErrorCode, heartbeat: ErrorCode) -> None:
    """0.9 and 0.10 own a log partition only once they have loaded it, and check that first; ListGroups names no group."""
    at = Harness(era)
    shard = GroupCoordinatorShard(at.partition, at.config, str)
    assert shard.begin_load(1, at.now_ms)
    at.coordinator.shards[at.partition] = shard
    assert at.join().error is join
    assert at.send(SyncGroupRequest(GROUP, 1, "m")).error is sync
    assert at.send(HeartbeatRequest(GROUP, 1, "m")).error is heartbeat
    assert at.send(OffsetFetchRequest(GROUP, (FOO,))).error is join
    assert at.list().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@eras
def test_apis_that_came_later(era: str) -> None:
    """Transactions in 0.11, DeleteGroups in 1.1, OffsetDelete in 2.4; a missing API has no version."""
    at = Harness(era)
    at.commit({FOO: 1}, group=GROUP)
    unknown = ErrorCode.UNSUPPORTED_VERSION
    old = era in ("0.9", "0.10")
    assert (errors(at.commit_in_transaction(1, {FOO: 1}).response) == {unknown}) == old
    assert (at.end_transaction(1, ControlType.COMMIT) is unknown) == old
    assert (
        at.delete(OTHER_GROUP if at.coordinator.partition_for(OTHER_GROUP) == at.partition else GROUP).error is unknown
    ) == old
    assert (at.delete_offsets(FOO).error is unknown) == (era not in ("3", "4"))


# ---- offsets


@eras
def test_commits_while_the_leader_assigns(era: str) -> None:
    """Up to 2.3 the rebalance is checked before the member."""
    at = Harness(era)
    completing(at)
    first = era in SCALA_TO_2_3
    assert errors(at.commit({FOO: 1}, "unknown", 1).response) == {
        ErrorCode.REBALANCE_IN_PROGRESS if first else ErrorCode.UNKNOWN_MEMBER_ID
    }


def test_an_instance_that_is_fenced_comes_first_in_2_3() -> None:
    at = Harness("2")
    joined = at.joined(instance="a")
    answer = at.commit({FOO: 1}, "another", joined.generation, instance="a").response
    assert errors(answer) == {ErrorCode.FENCED_INSTANCE_ID}


@eras
def test_fetching_no_partitions(era: str) -> None:
    """All of them in 0.9, where a request has no other way to express that."""
    at = Harness(era)
    at.commit({FOO: 5})
    assert len(at.send(OffsetFetchRequest(GROUP, ())).response.offsets) == (era == "0.9")


@eras
def test_topics_that_are_deleted(era: str) -> None:
    """Their offsets are deleted, since 0.10.1."""
    at = Harness(era)
    at.commit({FOO: 5})
    at.take(at.shard.topics_deleted(frozenset({"foo"}), at.now_ms))
    assert at.fetched(FOO) == {FOO: 5 if era == "0.9" else -1}


def test_a_stable_fetch_waits_for_the_log() -> None:
    """The Java coordinator (KIP-447): the fetch waits for all writes so far, and fails if the last of them fails."""
    at = Harness("4")
    assert at.ask_for_offsets(FOO).answered
    at.hold = True
    at.commit({FOO: 5}, group=GROUP)
    first = at.ask_for_offsets(FOO)
    at.commit({FOO: 6}, group=GROUP)
    second = at.ask_for_offsets()
    assert [first.answered, second.answered] == [False, False]
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    at.release()
    assert (first.error, second.error) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)
    at.append_error, at.hold = None, True
    at.commit({FOO: 7}, group=GROUP)
    third = at.ask_for_offsets()
    at.take(at.shard.unload(at.epoch + 1, at.now_ms))
    assert third.error is ErrorCode.NOT_COORDINATOR
    at.crash()
    at.release()
    assert at.fetched() == {}


def test_a_stable_fetch_goes_on_with_its_write() -> None:
    """Not when a later write completes."""
    at = Harness("4")
    at.hold = True
    at.commit({FOO: 5}, group=GROUP)
    call = at.ask_for_offsets()
    at.commit({FOO: 6}, group=GROUP)
    (_, first), (_, _) = at.held
    at.take(at.shard.appended(first, 0, at.now_ms))
    assert {partition: found.offset for partition, found in call.response.offsets.items()} == {FOO: 5}


def test_protocols_and_types_of_members() -> None:
    """In all eras a group requires one protocol that every member supports."""
    for era in ALL:
        at = Harness(era)
        at.stable_member(protocols=RANGE_OR_ROUND_ROBIN)
        other = JoinGroupRequest(GROUP, "", "connect", RANGE, TIMEOUT_MS, TIMEOUT_MS)
        assert at.send(other).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert at.group().protocol_type == CONSUMER
