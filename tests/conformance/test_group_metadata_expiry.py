"""The expiry cases of Kafka's `GroupMetadataManagerTest` (Scala, 3.9); each test names the case it mirrors."""

import pytest
from log_builder import GROUP, NOW_MS, TOPIC, Log, member, retention_ms

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey
from coordinator_core.codec.messages.offsets import OffsetCommitKey
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.state.era import ERAS
from coordinator_core.state.expiry import SweptGroup, expire, expires_at

BOTH = pytest.mark.parametrize("era", ["3", "4"])
FROM_2_1 = pytest.mark.parametrize("era", ["2", "3", "4"])
RETENTION = retention_ms("3")
GROUP_TOMBSTONE = encode(Record(2, GroupMetadataKey(GROUP), None, None))


@pytest.fixture
def log() -> Log:
    return Log()


def sweep(log: Log, era: str, now_ms: int) -> dict[str, SweptGroup]:
    return {swept.group_id: swept for swept in expire(log.load(era), now_ms)}


def swept_partitions(log: Log, era: str, now_ms: int) -> set[int]:
    found = sweep(log, era, now_ms)
    return {p.partition for p in found[GROUP].offsets} if found else set()


def offset_tombstone(partition: int) -> tuple[bytes, bytes | None]:
    return encode(Record(1, OffsetCommitKey(GROUP, TOPIC, partition), None, None))


@BOTH
def test_expire_offset(log: Log, era: str) -> None:
    """testExpireOffset"""
    log.group(timestamp=NOW_MS)
    log.commit(0, 37, expires=NOW_MS + 1)
    log.commit(1, 37, expires=NOW_MS + 3)
    found = sweep(log, era, NOW_MS + 2)[GROUP]
    assert found.offsets == (TopicPartition(TOPIC, 0),)
    assert found.tombstones == (offset_tombstone(0),)
    assert not found.group_removed


@pytest.mark.parametrize("era", ["0.10", "1", "2", "3", "4"])
def test_group_metadata_removal(log: Log, era: str) -> None:
    """testGroupMetadataRemoval, testGroupMetadataRemovalWithLogAppendTime: groups without offsets have no retention"""
    log.group(generation=5, version=1 if era in ("0.10", "1") else 3)
    found = sweep(log, era, NOW_MS)[GROUP]
    assert (found.group_removed, found.offsets, found.tombstones) == (True, (), (GROUP_TOMBSTONE,))


@pytest.mark.parametrize(("era", "group_tombstone"), [("0.10", ()), ("1", ()), ("2", ()), ("3", ()), ("4", (GROUP_TOMBSTONE,))])
def test_expire_group_with_offsets_only(log: Log, era: str, group_tombstone: tuple[tuple[bytes, None], ...]) -> None:
    """testExpireGroupWithOffsetsOnly: generation 0 leaves no group tombstone, except in the Java coordinator"""
    log.commit(0, 37, expires=NOW_MS + 1)
    log.commit(1, 37, expires=NOW_MS + 3)
    assert not sweep(log, era, NOW_MS + 2)[GROUP].group_removed
    found = sweep(log, era, NOW_MS + 4)[GROUP]
    assert found.group_removed
    assert found.tombstones == (offset_tombstone(0), offset_tombstone(1), *group_tombstone)


@FROM_2_1
def test_offset_expiration_semantics(log: Log, era: str) -> None:
    """testOffsetExpirationSemantics"""
    log.group([member()], protocol_type="protocolType")
    log.commit(0, 37, expires=NOW_MS + 1)
    log.commit(1, 37, expires=NOW_MS + RETENTION + 5)
    log.commit(2, 37, at=NOW_MS - RETENTION)
    assert sweep(log, era, NOW_MS + 10 * RETENTION) == {}
    log.group(protocol_type="protocolType", timestamp=NOW_MS + 2, version=2)
    assert swept_partitions(log, era, NOW_MS + 1) == {0}
    assert swept_partitions(log, era, NOW_MS + 2 + RETENTION - 1) == {0}
    assert swept_partitions(log, era, NOW_MS + 2 + RETENTION) == {0, 2}
    found = sweep(log, era, NOW_MS + 5 + RETENTION)[GROUP]
    assert (len(found.offsets), found.group_removed, found.tombstones[-1]) == (3, True, GROUP_TOMBSTONE)


@FROM_2_1
def test_offset_expiration_of_simple_consumer(log: Log, era: str) -> None:
    """testOffsetExpirationOfSimpleConsumer"""
    log.commit(0, 37)
    assert sweep(log, era, NOW_MS + RETENTION - 1) == {}
    found = sweep(log, era, NOW_MS + RETENTION)[GROUP]
    assert (found.offsets, found.group_removed) == ((TopicPartition(TOPIC, 0),), True)


@BOTH
def test_offset_expiration_of_active_group_semantics(log: Log, era: str) -> None:
    """testOffsetExpirationOfActiveGroupSemantics; a loaded group is never rebalancing"""
    for topic in ("subscribed", "unsubscribed"):
        log.commit(0, 37, topic=topic)
    log.group([member(topics=["subscribed", "unsubscribed"])])
    assert sweep(log, era, NOW_MS + RETENTION) == {}
    log.group([member(topics=["subscribed"])])
    assert sweep(log, era, NOW_MS + RETENTION - 1) == {}
    found = sweep(log, era, NOW_MS + RETENTION)[GROUP]
    assert (found.offsets, found.group_removed) == ((TopicPartition("unsubscribed", 0),), False)
    log.group([member(subscription=b"")])
    assert sweep(log, era, NOW_MS + RETENTION) == {}


def test_active_groups_keep_their_offsets_in_2_1_to_2_3(log: Log) -> None:
    """Beside testOffsetExpirationOfActiveGroupSemantics: KIP-496 is part of 2.4"""
    log.commit(0, 37, topic="unsubscribed")
    log.group([member(topics=["subscribed"])])
    assert sweep(log, "2", NOW_MS + 10 * RETENTION) == {}


@pytest.mark.parametrize("era", ["0.9", "0.10", "1"])
def test_active_groups_lose_offsets_up_to_2_0(log: Log, era: str) -> None:
    """testExpireOffsetsWithActiveGroup (0.10.2): only the expire timestamp counts, and it counts from the millisecond after"""
    log.group([member()], version=0)
    log.commit(0, 37, expires=NOW_MS + 1)
    assert sweep(log, era, NOW_MS + 1) == {}
    found = sweep(log, era, NOW_MS + 2)[GROUP]
    assert (found.offsets, found.group_removed) == ((TopicPartition(TOPIC, 0),), False)


@pytest.mark.parametrize("era", ERAS)
def test_offsets_without_group_expire_only_where_groups_do_not_matter(log: Log, era: str) -> None:
    """Beside the cases: sweeps walk groups from 2.1 on"""
    log.commit(0, 37, version=1)
    loaded = next(iter(log.load(era).committed(GROUP).values()))
    at = expires_at(ERAS[era], RETENTION, None, TOPIC, loaded)
    assert (at is None) == (era in ("2", "3", "4"))
