"""The loader and expiry cases of Kafka's `GroupMetadataManagerTest` (Scala, 3.9); each test names the case it mirrors.

Those tests target the loader of era 3; where the Java coordinator behaves the same, era 4 runs too.
"""

import pytest
from log_builder import GROUP, NOW_MS, TOPIC, Log, member, offsets, pending, retention_ms
from scalar_logs import read_log

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.record_batch import BatchRecord, write_batch
from coordinator_core.state.anomaly import AnomalyKind

BOTH = pytest.mark.parametrize("era", ["3", "4"])
COMMITTED = {0: 23, 1: 455, 2: 8992}
ABORTED = {2: 231, 3: 4551, 4: 89921}


@pytest.fixture
def log() -> Log:
    return Log()


def commit_all(log: Log, commits: dict[int, int], producer: int = -1) -> None:
    for partition, offset in commits.items():
        log.commit(partition, offset, producer=producer)


@BOTH
def test_load_offsets_without_group(log: Log, era: str) -> None:
    """testLoadOffsetsWithoutGroup"""
    commit_all(log, COMMITTED)
    state = log.load(era)
    group = state.groups()[GROUP]
    assert (group.state, group.group_type, group.generation, group.state_timestamp) == ("Empty", "simple", 0, NOW_MS)
    assert offsets(state) == COMMITTED


@BOTH
def test_load_empty_group_with_offsets(log: Log, era: str) -> None:
    """testLoadEmptyGroupWithOffsets"""
    commit_all(log, COMMITTED)
    log.group(generation=15)
    state = log.load(era)
    group = state.groups()[GROUP]
    assert (group.state, group.generation, group.protocol_type) == ("Empty", 15, "consumer")
    assert (group.leader, group.protocol) == (None, None)
    assert offsets(state) == COMMITTED


@BOTH
def test_load_transactional_offsets_without_group(log: Log, era: str) -> None:
    """testLoadTransactionalOffsetsWithoutGroup"""
    commit_all(log, COMMITTED, producer=1000)
    log.marker(1000)
    state = log.load(era)
    assert state.groups()[GROUP].state == "Empty"
    assert offsets(state) == COMMITTED
    assert pending(state) == {}


def test_do_not_load_aborted_transactional_offset_commits(log: Log) -> None:
    """testDoNotLoadAbortedTransactionalOffsetCommits; the Java coordinator keeps the group that the commits made."""
    commit_all(log, COMMITTED, producer=1000)
    log.marker(1000, ControlType.ABORT)
    assert GROUP not in log.load("3").groups()
    java = log.load("4")
    assert java.groups()[GROUP].group_type == "simple"
    assert offsets(java) == {}


@BOTH
def test_group_loaded_with_pending_commits(log: Log, era: str) -> None:
    """testGroupLoadedWithPendingCommits"""
    commit_all(log, COMMITTED, producer=1000)
    state = log.load(era)
    assert state.groups()[GROUP].state == "Empty"
    assert offsets(state) == {}
    assert pending(state) == {partition: {1000: offset} for partition, offset in COMMITTED.items()}


@BOTH
def test_load_with_committed_and_aborted_transactional_offset_commits(log: Log, era: str) -> None:
    """testLoadWithCommittedAndAbortedTransactionalOffsetCommits"""
    commit_all(log, ABORTED, producer=1000)
    log.marker(1000, ControlType.ABORT)
    commit_all(log, COMMITTED, producer=1000)
    log.marker(1000)
    state = log.load(era)
    assert offsets(state) == COMMITTED
    assert pending(state) == {}


@BOTH
def test_load_with_committed_and_aborted_and_pending_transactional_offset_commits(log: Log, era: str) -> None:
    """testLoadWithCommittedAndAbortedAndPendingTransactionalOffsetCommits"""
    commit_all(log, COMMITTED, producer=1000)
    log.marker(1000)
    commit_all(log, ABORTED, producer=1000)
    log.marker(1000, ControlType.ABORT)
    commit_all(log, {3: 2312, 4: 45512, 5: 899212}, producer=1000)
    state = log.load(era)
    assert offsets(state) == COMMITTED
    assert [commit.log_offset for commit in state.committed(GROUP).values()] == [0, 1, 2]
    assert pending(state) == {3: {1000: 2312}, 4: {1000: 45512}, 5: {1000: 899212}}
    log.marker(1000)
    assert offsets(log.load(era)) == COMMITTED | {3: 2312, 4: 45512, 5: 899212}


@BOTH
def test_load_transactional_offset_commits_from_multiple_producers(log: Log, era: str) -> None:
    """testLoadTransactionalOffsetCommitsFromMultipleProducers"""
    commit_all(log, {0: 2312, 1: 45512}, producer=1000)
    commit_all(log, {2: 899212, 3: 23}, producer=1001)
    log.marker(1001)
    log.marker(1000)
    state = log.load(era)
    assert offsets(state) == {0: 2312, 1: 45512, 2: 899212, 3: 23}
    assert {p.partition: c.log_offset for p, c in state.committed(GROUP).items()} == {0: 0, 1: 1, 2: 2, 3: 3}
    assert {p.partition: c.producer_id for p, c in state.committed(GROUP).items()} == {0: 1000, 1: 1000, 2: 1001, 3: 1001}


@BOTH
def test_group_load_with_consumer_and_transactional_offset_commits_consumer_wins(log: Log, era: str) -> None:
    """testGroupLoadWithConsumerAndTransactionalOffsetCommitsConsumerWins"""
    commit_all(log, {0: 23}, producer=1000)
    commit_all(log, {0: 24})
    log.marker(1000)
    state = log.load(era)
    assert offsets(state) == {0: 24}
    assert state.committed(GROUP)[TopicPartition(TOPIC, 0)].log_offset == 1


@BOTH
def test_group_load_with_consumer_and_transactional_offset_commits_transaction_wins(log: Log, era: str) -> None:
    """testGroupLoadWithConsumerAndTransactionalOffsetCommitsTransactionWins"""
    commit_all(log, {0: 23})
    commit_all(log, {0: 24}, producer=1000)
    log.marker(1000)
    assert offsets(log.load(era)) == {0: 24}


@BOTH
def test_group_not_exists(log: Log, era: str) -> None:
    """testGroupNotExists"""
    state = log.load(era)
    assert not state.has_group(GROUP)
    assert state.group(GROUP) is None
    assert dict(state.committed(GROUP)) == {}


@BOTH
def test_load_offsets_with_tombstones(log: Log, era: str) -> None:
    """testLoadOffsetsWithTombstones"""
    commit_all(log, COMMITTED)
    log.offset_tombstone(1)
    state = log.load(era)
    assert state.groups()[GROUP].state == "Empty"
    assert offsets(state) == {0: 23, 2: 8992}


@BOTH
def test_load_offsets_and_group(log: Log, era: str) -> None:
    """testLoadOffsetsAndGroup"""
    commit_all(log, COMMITTED)
    log.group([member("98098230493")], generation=935, leader="98098230493")
    state = log.load(era)
    group = state.groups()[GROUP]
    assert (group.state, group.generation, group.leader) == ("Stable", 935, "98098230493")
    assert (group.protocol_type, group.protocol) == ("consumer", "range")
    assert [m.member_id for m in group.members] == ["98098230493"]
    assert offsets(state) == COMMITTED
    assert {commit.expire_timestamp for commit in state.committed(GROUP).values()} == {None}


@BOTH
def test_load_group_with_tombstone(log: Log, era: str) -> None:
    """testLoadGroupWithTombstone"""
    log.group([member()])
    log.group_tombstone()
    assert log.load(era).groups() == {}


@BOTH
def test_load_group_with_large_group_metadata_record(log: Log, era: str) -> None:
    """testLoadGroupWithLargeGroupMetadataRecord: larger than any load buffer default of its time"""
    topics = [f"{TOPIC}-{number:05}-{'x' * 200}" for number in range(2000)]
    commit_all(log, COMMITTED)
    log.group([member(topics=topics)])
    state = log.load(era)
    assert state.groups()[GROUP].subscribed_topics == tuple(topics)
    assert offsets(state) == COMMITTED


def test_load_group_and_offsets_with_corrupted_log() -> None:
    """testLoadGroupAndOffsetsWithCorruptedLog: a read without data ends the load"""
    assert list(read_log(b"", 0, start_offset=15, end_offset=27)) == []


@BOTH
def test_offset_write_after_group_removed(log: Log, era: str) -> None:
    """testOffsetWriteAfterGroupRemoved"""
    log.group([member()])
    log.group_tombstone()
    commit_all(log, COMMITTED)
    state = log.load(era)
    group = state.groups()[GROUP]
    assert (group.state, group.group_type, group.generation) == ("Empty", "simple", 0)
    assert offsets(state) == COMMITTED


@BOTH
def test_load_group_and_offsets_from_different_segments(log: Log, era: str) -> None:
    """testLoadGroupAndOffsetsFromDifferentSegments"""
    commit_all(log, {0: 23, 1: 455})
    log.group([member("a"), member("b")], leader="a")
    commit_all(log, {0: 24, 2: 8992})
    log.group([member("c")], leader="c", generation=6)
    state = log.load(era)
    group = state.groups()[GROUP]
    assert (group.leader, [m.member_id for m in group.members], group.generation) == ("c", ["c"], 6)
    assert offsets(state) == {0: 24, 1: 455, 2: 8992}


@BOTH
def test_load_group_with_static_member(log: Log, era: str) -> None:
    """testloadGroupWithStaticMember"""
    log.group([member("static", instance_id="instance"), member("dynamic")])
    members = log.load(era).groups()[GROUP].members
    assert {m.member_id: m.group_instance_id for m in members} == {"static": "instance", "dynamic": None}


@BOTH
def test_load_consumer_group(log: Log, era: str) -> None:
    """testLoadConsumerGroup"""
    log.group([member(topics=["foo"])])
    assert log.load(era).groups()[GROUP].subscribed_topics == ("foo",)


@BOTH
def test_load_empty_consumer_group(log: Log, era: str) -> None:
    """testLoadEmptyConsumerGroup: no topics, which is not the same as unknown topics"""
    log.group()
    assert log.load(era).groups()[GROUP].subscribed_topics == ()


@BOTH
def test_load_consumer_group_with_faulty_consumer_protocol(log: Log, era: str) -> None:
    """testLoadConsumerGroupWithFaultyConsumerProtocol"""
    log.group([member(subscription=b"")])
    group = log.load(era).groups()[GROUP]
    assert (group.state, group.subscribed_topics, group.members[0].subscribed_topics) == ("Stable", None, None)


def test_read_from_old_group_metadata() -> None:
    """testReadFromOldGroupMetadata: values 0–2"""
    for version in range(3):
        log = Log()
        log.group([member("m1", instance_id="lost")], version=version)
        (loaded,) = log.load("3").groups()[GROUP].members
        assert loaded.group_instance_id is None
        assert loaded.rebalance_timeout_ms == (10_000 if version == 0 else 60_000)


def test_current_state_timestamp_for_all_group_metadata_versions() -> None:
    """testCurrentStateTimestampForAllGroupMetadataVersions: stored from version 2 on; 2.3 reads it from version 2 only"""
    found = {}
    for version in range(4):
        log = Log()
        log.group(version=version, timestamp=NOW_MS)
        found[version] = [log.load(era).groups()[GROUP].state_timestamp for era in ("2", "3", "4")]
    assert found == {0: [None] * 3, 1: [None] * 3, 2: [NOW_MS] * 3, 3: [None, NOW_MS, NOW_MS]}


@BOTH
def test_store_empty_group(log: Log, era: str) -> None:
    """testStoreEmptyGroup"""
    log.group(generation=27)
    group = log.load(era).groups()[GROUP]
    assert (group.state, group.generation, group.protocol_type, group.group_type) == ("Empty", 27, "consumer", "classic")


@BOTH
def test_store_empty_simple_group(log: Log, era: str) -> None:
    """testStoreEmptySimpleGroup"""
    log.group(generation=0, protocol_type="")
    group = log.load(era).groups()[GROUP]
    assert (group.state, group.generation, group.protocol_type, group.group_type) == ("Empty", 0, None, "simple")


@BOTH
def test_commit_offset(log: Log, era: str) -> None:
    """testCommitOffset: the offset of the written record can be fetched"""
    log.group([member()])
    log.commit(0, 37)
    assert offsets(log.load(era)) == {0: 37}


@BOTH
def test_transactional_commit_offset_committed(log: Log, era: str) -> None:
    """testTransactionalCommitOffsetCommitted"""
    log.group([member()])
    log.commit(0, 37, producer=232)
    assert (offsets(log.load(era)), pending(log.load(era))) == ({}, {0: {232: 37}})
    log.marker(232)
    assert (offsets(log.load(era)), pending(log.load(era))) == ({0: 37}, {})


@BOTH
def test_transactional_commit_offset_aborted(log: Log, era: str) -> None:
    """testTransactionalCommitOffsetAborted"""
    log.group([member()])
    log.commit(0, 37, producer=232)
    log.marker(232, ControlType.ABORT)
    assert (offsets(log.load(era)), pending(log.load(era))) == ({}, {})


@pytest.mark.parametrize("era", ["0.10", "1", "2", "3", "4"])
def test_load_offset_from_old_commit(log: Log, era: str) -> None:
    """testLoadOffsetFromOldCommit: value 1 with a retention"""
    log.commit(0, 23, expires=NOW_MS + 1000)
    (commit,) = log.load(era).committed(GROUP).values()
    assert (commit.expire_timestamp, commit.leader_epoch) == (NOW_MS + 1000, None)


@BOTH
def test_load_offset_with_explicit_retention(log: Log, era: str) -> None:
    """testLoadOffsetWithExplicitRetention, beside a commit without"""
    log.commit(0, 23, expires=NOW_MS + 1000)
    log.commit(1, 24)
    found = {p.partition: commit.expire_timestamp for p, commit in log.load(era).committed(GROUP).items()}
    assert found == {0: NOW_MS + 1000, 1: None}


@pytest.mark.parametrize(
    ("era", "expire"), [("0.9", NOW_MS + retention_ms("0.9")), ("1", NOW_MS + retention_ms("1")), ("2", None)]
)
def test_loaders_up_to_2_0_fill_in_the_expiry(log: Log, era: str, expire: int | None) -> None:
    """Beside testLoadOffsetFromOldCommit: values without an expire time"""
    log.commit(0, 23, version=1)
    (commit,) = log.load(era).committed(GROUP).values()
    assert commit.expire_timestamp == expire


@pytest.mark.parametrize(("era", "loaded"), [("2", [None, None, 0]), ("3", [None, -2, 0]), ("4", [None, -2, 0])])
def test_negative_leader_epochs(log: Log, era: str, loaded: list[int | None]) -> None:
    """Beside testSerdeOffsetCommitValue: which stored epochs mean "none" """
    for partition, leader_epoch in enumerate([-1, -2, 0]):
        log.commit(partition, 1, leader_epoch=leader_epoch)
    assert [commit.leader_epoch for commit in log.load(era).committed(GROUP).values()] == loaded


@BOTH
def test_load_offsets_with_empty_control_batch(log: Log, era: str) -> None:
    """testLoadOffsetsWithEmptyControlBatch"""
    records = [log.commit(partition, offset) for partition, offset in COMMITTED.items()]
    data = write_batch([BatchRecord(r.offset, r.timestamp, r.key, r.value) for r in records])
    control = write_batch([BatchRecord(3, NOW_MS, bytes(4), bytes(6))], producer_id=1, producer_epoch=0, control=True)
    # An emptied batch consists of its header: length and record count shrink, its offset range is unchanged.
    header = bytearray(control[:61])
    header[8:12] = (61 - 12).to_bytes(4, "big")
    header[57:61] = bytes(4)
    log.records = [item for item in read_log(data + bytes(header), 0) if isinstance(item, LogRecord)]
    assert len(log.records) == 3
    assert offsets(log.load(era)) == COMMITTED


def test_read_message_key_can_read_unknown_message(log: Log) -> None:
    """testReadMessageKeyCanReadUnknownMessage"""
    log.raw((32767).to_bytes(2, "big") + b"whatever", b"")
    _, (anomaly,) = log.load_with_anomalies()
    assert (anomaly.kind, anomaly.detail) == (AnomalyKind.UNREAD, "unknown record type 32767")


@BOTH
def test_load_groups_and_offsets_will_ignore_unknown_message(log: Log, era: str) -> None:
    """testLoadGroupsAndOffsetsWillIgnoreUnknownMessage"""
    log.commit(0, 23)
    log.raw((32767).to_bytes(2, "big") + b"whatever", b"")
    log.group([member()])
    log.commit(1, 455)
    state, anomalies = log.load_with_anomalies(era)
    assert [anomaly.offset for anomaly in anomalies] == [1]
    assert offsets(state) == {0: 23, 1: 455}
    assert state.groups()[GROUP].state == "Stable"


@BOTH
def test_should_throw_exception_for_unsupported_group_metadata_version(log: Log, era: str) -> None:
    """testShouldThrowExceptionForUnsupportedGroupMetadataVersion: reported, and the rest loads"""
    log.commit(0, 23)
    key = log.group_tombstone(group="other").key
    log.records.pop()
    log.raw(key, (-32768).to_bytes(2, "big", signed=True))
    state, (anomaly,) = log.load_with_anomalies(era)
    assert (anomaly.kind, "-32768" in anomaly.detail) == (AnomalyKind.UNDECODABLE, True)
    assert offsets(state) == {0: 23}
