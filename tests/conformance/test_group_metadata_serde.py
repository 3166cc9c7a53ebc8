"""The serde cases of Kafka's `GroupMetadataManagerTest` (Scala, 3.9); each test names the case it mirrors."""

from dataclasses import replace

import pytest
from log_builder import GROUP, NOW_MS, TOPIC, Log, member

from coordinator_core.codec import Record, decode, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue

KEY = OffsetCommitKey(GROUP, TOPIC, 0)
COMMIT = OffsetCommitValue(offset=537, leader_epoch=15, metadata="metadata", commit_timestamp=NOW_MS)


def round_trip(record: Record) -> Record:
    decoded = decode(*encode(record))
    assert isinstance(decoded, Record)
    return decoded


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_serde_offset_commit_value(version: int) -> None:
    """testSerdeOffsetCommitValue: the leader epoch survives from version 3 on"""
    value = round_trip(Record(1, KEY, COMMIT, version)).value
    assert isinstance(value, OffsetCommitValue)
    assert (value.offset, value.metadata, value.commit_timestamp) == (537, "metadata", NOW_MS)
    assert value.leader_epoch == (15 if version >= 3 else -1)


def test_serde_offset_commit_value_with_expire_timestamp() -> None:
    """testSerdeOffsetCommitValueWithExpireTimestamp: only version 1 has one"""
    value = OffsetCommitValue(537, metadata="m", commit_timestamp=NOW_MS, expire_timestamp=NOW_MS + 1000)
    kept = {version: round_trip(Record(1, KEY, value, version)).value for version in range(5)}
    assert {v: found.expire_timestamp for v, found in kept.items() if isinstance(found, OffsetCommitValue)} == {
        0: -1,
        1: NOW_MS + 1000,
        2: -1,
        3: -1,
        4: -1,
    }


@pytest.mark.parametrize(
    ("era", "version"), [("2", 1), ("2", 2), ("2", 3), *((era, version) for era in ("3", "4") for version in (1, 2, 3, 4))]
)
def test_serde_offset_commit_value_with_none_expire_timestamp(version: int, era: str) -> None:
    """testSerdeOffsetCommitValueWithNoneExpireTimestamp: -1 in version 1 means none (KAFKA-8069 of 2.1.0 is not reproduced)"""
    log = Log()
    log.append(Record(1, KEY, COMMIT, version))
    (commit,) = log.load(era).committed(GROUP).values()
    assert commit.expire_timestamp is None


def test_serialize_group_metadata_value_to_highest_non_flexible_version() -> None:
    """testSerializeGroupMetadataValueToHighestNonFlexibleVersion"""
    value = GroupMetadataValue("consumer", 1, "range", "m1", NOW_MS, (member(instance_id="i"),))
    assert round_trip(Record(2, GroupMetadataKey(GROUP), value, 3)).value == value


def test_serialize_offset_commit_value_to_highest_non_flexible_version() -> None:
    """testSerializeOffsetCommitValueToHighestNonFlexibleVersion"""
    assert round_trip(Record(1, KEY, COMMIT, 3)).value == COMMIT


def test_deserialize_highest_supported_group_metadata_value_version() -> None:
    """testDeserializeHighestSupportedGroupMetadataValueVersion"""
    value = GroupMetadataValue("consumer", 1, "range", "m1", NOW_MS, (member(instance_id="i"),))
    assert round_trip(Record(2, GroupMetadataKey(GROUP), value, 4)) == Record(2, GroupMetadataKey(GROUP), value, 4)


def test_deserialize_highest_supported_offset_commit_value_version() -> None:
    """testDeserializeHighestSupportedOffsetCommitValueVersion"""
    assert round_trip(Record(1, KEY, COMMIT, 4)) == Record(1, KEY, COMMIT, 4)


def test_deserialize_future_offset_commit_value() -> None:
    """testDeserializeFutureOffsetCommitValue: tags 0 and 1 of a future version; here tag 0 is the topic id since 4.1"""
    key, value = encode(Record(1, KEY, COMMIT, 4))
    assert value is not None
    future = value[:-1] + bytes([1, 1, 2]) + b"\x01\x02"
    decoded = decode(key, future)
    assert isinstance(decoded, Record)
    assert isinstance(decoded.value, OffsetCommitValue)
    assert decoded.value.unknown_tags == ((1, b"\x01\x02"),)
    assert encode(decoded) == (key, future)


def test_deserialize_future_group_metadata_value() -> None:
    """testDeserializeFutureGroupMetadataValue: tags of the group and of a member"""
    tags = ((0, b"zero"), (1, b"one"))
    from_future = GroupMetadataValue("consumer", 1, "range", "m1", NOW_MS, (replace(member(), unknown_tags=tags),), tags)
    value = round_trip(Record(2, GroupMetadataKey(GROUP), from_future, 4)).value
    assert isinstance(value, GroupMetadataValue)
    assert (value.unknown_tags, value.members[0].unknown_tags) == (tags, tags)
