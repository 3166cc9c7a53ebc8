"""The replay and expiry cases of Kafka's `OffsetMetadataManagerTest` (Java, 4.3); each test names the case it mirrors."""

from uuid import UUID

import pytest
from log_builder import GROUP, NOW_MS, TOPIC, Log, member, offsets, pending, retention_ms

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from coordinator_core.codec.messages.modern import GroupKey, TargetAssignmentMetadataValue
from coordinator_core.codec.messages.share import ShareGroupMetadataValue
from coordinator_core.codec.messages.streams import (
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTopologyValue,
    Subtopology,
)
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import ControlType
from coordinator_core.state.expiry import expire

RETENTION = retention_ms("4")
FAR = NOW_MS + 10 * RETENTION


@pytest.fixture
def log() -> Log:
    return Log()


def swept(log: Log, now_ms: int) -> tuple[list[tuple[str, int]], bool]:
    found = expire(log.load("4"), now_ms)
    return ([(p.topic, p.partition) for p in found[0].offsets], found[0].group_removed) if found else ([], False)


def test_fetch_offsets_with_unknown_group(log: Log) -> None:
    """testFetchOffsetsWithUnknownGroup, testFetchAllOffsetsWithUnknownGroup"""
    log.commit(0, 100, group="other")
    state = log.load("4")
    assert dict(state.committed(GROUP)) == {}
    assert offsets(state, "other") == {0: 100}


def test_fetch_offsets_with_dead_group(log: Log) -> None:
    """testGenericGroupFetchOffsetsWithDeadGroup, testGenericGroupFetchAllOffsetsWithDeadGroup: a removed group hides its offsets,
    and its next commit shows them again"""
    log.commit(0, 100)
    log.group([member()])
    log.group_tombstone()
    assert offsets(log.load("4")) == {}
    assert offsets(log.load("3")) == {0: 100}
    log.commit(1, 101)
    assert offsets(log.load("4")) == {0: 100, 1: 101}


def test_fetch_offsets_with_pending_transactional_offsets(log: Log) -> None:
    """testFetchOffsetsWithPendingTransactionalOffsets, testFetchAllOffsetsWithPendingTransactionalOffsets"""
    log.commit(0, 100)
    log.commit(0, 101, producer=10)
    log.commit(1, 110, producer=10)
    state = log.load("4")
    assert offsets(state) == {0: 100}
    assert pending(state) == {0: {10: 101}, 1: {10: 110}}


def test_fetch_offsets_with_topic_ids(log: Log) -> None:
    """testFetchOffsetsWithTopicIds: value 4 keeps the id of the topic"""
    log.commit(0, 100, version=4, topic_id=UUID(int=7))
    log.commit(1, 100, version=4)
    found = log.load("4").committed(GROUP)
    assert {p.partition: commit.topic_id for p, commit in found.items()} == {0: UUID(int=7), 1: None}


def test_cleanup_expired_offsets_group_has_no_offsets(log: Log) -> None:
    """testCleanupExpiredOffsetsGroupHasNoOffsets: in a group without offsets, all offsets have expired"""
    log.group(timestamp=NOW_MS)
    assert swept(log, NOW_MS) == ([], True)


def test_cleanup_expired_offsets_group_does_not_exist(log: Log) -> None:
    """testCleanupExpiredOffsetsGroupDoesNotExist: hidden offsets are not swept"""
    log.commit(0, 100)
    log.group([member()])
    log.group_tombstone()
    assert swept(log, FAR) == ([], False)


def test_cleanup_expired_offsets_empty_offset_expiration_condition(log: Log) -> None:
    """testCleanupExpiredOffsetsEmptyOffsetExpirationCondition: an active group of another protocol type"""
    log.commit(0, 100)
    log.group([member()], protocol_type="connect")
    assert swept(log, FAR) == ([], False)


def test_cleanup_expired_offsets(log: Log) -> None:
    """testCleanupExpiredOffsets"""
    log.commit(0, 100, topic="first", at=NOW_MS - RETENTION)
    log.commit(0, 100, topic="second", at=NOW_MS - RETENTION)
    log.commit(1, 101, topic="second", at=NOW_MS + 500)
    log.group([member(topics=["first"])])
    assert swept(log, NOW_MS) == ([("second", 0)], False)
    log.group([member(topics=["third"])])
    assert swept(log, NOW_MS) == ([("first", 0), ("second", 0)], False)
    assert swept(log, NOW_MS + 500 + RETENTION) == ([("first", 0), ("second", 0), ("second", 1)], False)
    log.group(timestamp=NOW_MS - RETENTION)
    assert swept(log, NOW_MS) == ([("first", 0), ("second", 0), ("second", 1)], True)


def test_cleanup_expired_offsets_with_pending_transactional_offsets(log: Log) -> None:
    """testCleanupExpiredOffsetsWithPendingTransactionalOffsets; Scala expires the committed offset and keeps the group"""
    log.commit(0, 100)
    log.commit(1, 100)
    log.commit(0, 101, producer=10)
    assert swept(log, FAR) == ([(TOPIC, 1)], False)
    (scala,) = expire(log.load("3"), FAR)
    assert ([p.partition for p in scala.offsets], scala.group_removed) == ([0, 1], False)


def test_cleanup_expired_offsets_with_pending_transactional_offsets_only(log: Log) -> None:
    """testCleanupExpiredOffsetsWithPendingTransactionalOffsetsOnly"""
    log.commit(0, 100)
    log.commit(1, 101, producer=10)
    assert swept(log, FAR) == ([(TOPIC, 0)], False)


def test_consumer_groups_expire_by_commit_time(log: Log) -> None:
    """Beside testCleanupExpiredOffsets: a KIP-848 group that has just become empty gets no grace period"""
    log.commit(0, 100)
    log.commit(0, 100, topic="other")
    log.consumer_member()
    assert swept(log, NOW_MS + RETENTION) == ([("other", 0)], False)
    for record_type in (8, 7, 5):
        log.modern(record_type, None)
    log.modern(3, ConsumerGroupMetadataValue(2))
    regex = ConsumerGroupRegularExpressionKey(GROUP, "f.*")
    log.append(Record(16, regex, ConsumerGroupRegularExpressionValue(("food",), 1, NOW_MS), 0))
    (found,) = expire(log.load("4"), NOW_MS + RETENTION)
    assert found.group_removed
    assert [int.from_bytes(key[:2], "big") for key, _ in found.tombstones] == [1, 1, 6, 16, 4, 3]
    assert found.tombstones[3] == encode(Record(16, regex, None, None))


def test_streams_groups_keep_source_topics_while_they_have_members(log: Log) -> None:
    """Beside testCleanupExpiredOffsets: `StreamsGroup.isSubscribedToTopic`"""
    log.commit(0, 100)
    log.modern(17, StreamsGroupMetadataValue(1, 0))
    log.modern(23, StreamsGroupTopologyValue(0, (Subtopology("0", (TOPIC,)),)))
    log.modern(19, StreamsGroupMemberMetadataValue(None, None, "client", "/127.0.0.1", -1, 0, "process"))
    assert swept(log, FAR) == ([], False)
    log.modern(19, None)
    (found,) = expire(log.load("4"), FAR)
    assert [int.from_bytes(key[:2], "big") for key, _ in found.tombstones] == [1, 20, 17, 23]


def test_share_groups_never_expire(log: Log) -> None:
    """Beside testCleanupExpiredOffsets: `ShareGroup.shouldExpire`"""
    log.modern(11, ShareGroupMetadataValue(1, 0))
    log.commit(0, 100)
    assert swept(log, FAR) == ([], False)


def test_replay(log: Log) -> None:
    """testReplay"""
    log.commit(0, 100, leader_epoch=10)
    log.commit(0, 200, leader_epoch=10)
    log.commit(1, 200, leader_epoch=-1)
    log.commit(1, 300, leader_epoch=10, expires=NOW_MS + 12345)
    found = log.load("4").committed(GROUP)
    assert {p: (c.offset, c.leader_epoch, c.expire_timestamp, c.log_offset) for p, c in found.items()} == {
        TopicPartition(TOPIC, 0): (200, 10, None, 1),
        TopicPartition(TOPIC, 1): (300, None, NOW_MS + 12345, 3),
    }


def test_transactional_replay(log: Log) -> None:
    """testTransactionalReplay"""
    log.commit(0, 100, producer=5)
    log.commit(1, 101, producer=5)
    log.commit(0, 102, group="bar", producer=5)
    log.commit(1, 103, group="bar", producer=6)
    state = log.load("4")
    assert pending(state) == {0: {5: 100}, 1: {5: 101}}
    assert pending(state, "bar") == {0: {5: 102}, 1: {6: 103}}
    assert offsets(state) == offsets(state, "bar") == {}


def test_replay_with_tombstone_and_pending_transactional_offsets(log: Log) -> None:
    """testReplayWithTombstoneAndPendingTransactionalOffsets; a plain Scala tombstone keeps pending offsets"""
    log.commit(0, 100)
    log.commit(0, 101, producer=10)
    log.commit(1, 102, producer=10)
    log.offset_tombstone(0)
    assert (offsets(log.load("4")), pending(log.load("4"))) == ({}, {1: {10: 102}})
    assert (offsets(log.load("3")), pending(log.load("3"))) == ({}, {0: {10: 101}, 1: {10: 102}})


def test_replay_with_tombstone_inside_of_a_transaction(log: Log) -> None:
    """Beside testReplayWithTombstoneAndPendingTransactionalOffsets: Java removes all, Scala what its producer has pending"""
    log.commit(0, 100)
    log.commit(0, 101, producer=10)
    log.commit(0, 102, producer=11)
    log.offset_tombstone(0, producer=10)
    assert (offsets(log.load("4")), pending(log.load("4"))) == ({}, {})
    assert (offsets(log.load("3")), pending(log.load("3"))) == ({0: 100}, {0: {11: 102}})


def test_replay_transaction_end_marker_with_commit(log: Log) -> None:
    """testReplayTransactionEndMarkerWithCommit, with the abort beside it"""
    log.commit(0, 100, producer=5)
    log.commit(1, 101, producer=6)
    log.marker(7)
    log.marker(5)
    log.marker(6, ControlType.ABORT)
    state = log.load("4")
    assert (offsets(state), pending(state)) == ({0: 100}, {})


@pytest.mark.parametrize(("era", "left"), [("3", {}), ("4", {0: {5: 100}})])
def test_unknown_markers(log: Log, era: str, left: dict[int, dict[int, int]]) -> None:
    """Beside testReplayTransactionEndMarkerWithCommit: Scala treats all markers but COMMIT as aborts, Java knows only two"""
    log.commit(0, 100, producer=5)
    log.marker(5, control_type=2)
    assert pending(log.load(era)) == left


def test_replay_transaction_end_marker_keeps_the_most_recent_committed_offset(log: Log) -> None:
    """testReplayTransactionEndMarkerKeepsTheMostRecentCommittedOffset"""
    log.commit(0, 100, producer=5)
    log.commit(0, 101)
    log.commit(0, 99, producer=6)
    log.marker(5)
    assert offsets(log.load("4")) == {0: 101}
    log.marker(6)
    assert offsets(log.load("4")) == {0: 99}


def test_type_0_has_value_version_0(log: Log) -> None:
    """Beside testReplay: `LegacyOffsetCommitValue` of 4.1 and later; Scala reads any version"""
    log.commit(0, 100, record_type=0, version=0)
    log.commit(1, 100, record_type=0, version=1)
    state, (anomaly,) = log.load_with_anomalies("4")
    assert (offsets(state), anomaly.offset) == ({0: 100}, 1)
    assert offsets(log.load("3")) == {0: 100, 1: 100}


def test_offsets_do_not_replace_groups(log: Log) -> None:
    """Beside testReplay: a commit creates a group only if none exists, and a group record takes over such a group"""
    log.commit(0, 100)
    log.modern(3, ConsumerGroupMetadataValue(1))
    log.modern(6, TargetAssignmentMetadataValue(1))
    log.modern(8, ConsumerGroupCurrentMemberAssignmentValue(1, 0, 0))
    log.commit(1, 101)
    state = log.load("4")
    assert (state.groups()[GROUP].group_type, state.groups()[GROUP].state) == ("consumer", "Stable")
    assert offsets(state) == {0: 100, 1: 101}
    assert encode(Record(3, GroupKey(GROUP), None, None))[0] in state.registry.groups[GROUP].records
