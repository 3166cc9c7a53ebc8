"""Golden bytes for the corners of the record formats, each written out by hand."""

from typing import Any
from uuid import UUID

import pytest
from expecting import expect

from coordinator_core.codec import Malformed, Record, UnknownType, UnknownVersion, decode, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.consumer import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)
from coordinator_core.codec.messages.modern import GroupKey, MemberKey, PartitionMetadataValue, TopicMetadata, TopicPartitions
from coordinator_core.codec.messages.offsets import ZERO_UUID, OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.messages.streams import Endpoint, KeyValue, StreamsGroupMemberMetadataValue, StreamsGroupMetadataValue
from coordinator_core.codec.records import Key

COMMIT_KEY = bytes.fromhex("0001 0001 67 0001 74 00000003")
TOPIC_ID = UUID("00000001-0002-0003-0004-000000000005")
TOPIC_ID_HEX = "00000001 0002 0003 0004 000000000005"
GROUP_KEY = "0001 67"
#: Values that a caller may pass for a text although its type forbids them.
NULL: Any = None
MEMBER_KEY = "0001 67 0001 6d"


def decoded(key: str, value: str) -> Any:
    record = decode(bytes.fromhex(key), bytes.fromhex(value))
    assert isinstance(record, Record), record
    assert encode(record) == (bytes.fromhex(key), bytes.fromhex(value))
    return record.value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0000 0000000000000025 0001 6d 0000000000000007", OffsetCommitValue(37, metadata="m", commit_timestamp=7)),
        (
            "0001 0000000000000025 0001 6d 0000000000000007 0000000000000009",
            OffsetCommitValue(37, metadata="m", commit_timestamp=7, expire_timestamp=9),
        ),
        ("0002 0000000000000025 0001 6d 0000000000000007", OffsetCommitValue(37, metadata="m", commit_timestamp=7)),
        (
            "0003 0000000000000025 00000005 0001 6d 0000000000000007",
            OffsetCommitValue(37, leader_epoch=5, metadata="m", commit_timestamp=7),
        ),
        ("0004 0000000000000025 00000005 01 0000000000000007 00", OffsetCommitValue(37, leader_epoch=5, commit_timestamp=7)),
        (
            f"0004 0000000000000025 ffffffff 02 6d 0000000000000007 01 00 10 {TOPIC_ID_HEX}",
            OffsetCommitValue(37, metadata="m", commit_timestamp=7, topic_id=TOPIC_ID),
        ),
    ],
)
def test_offset_commits_of_every_version(value: str, expected: OffsetCommitValue) -> None:
    assert decoded(COMMIT_KEY.hex(), value) == expected


def test_type_0_takes_any_value_version() -> None:
    record = decode(bytes.fromhex("0000") + COMMIT_KEY[2:], bytes.fromhex("0003 0000000000000025 00000005 0000 0000000000000007"))

    assert record == Record(0, OffsetCommitKey("g", "t", 3), OffsetCommitValue(37, 5, "", 7), 3)


def test_a_null_value_is_a_tombstone() -> None:
    assert decode(COMMIT_KEY, None) == Record(1, OffsetCommitKey("g", "t", 3), None, None)


def test_bytes_after_key_and_value_are_ignored() -> None:
    value = bytes.fromhex("0004 0000000000000025 00000005 01 0000000000000007 00")

    assert decode(COMMIT_KEY + b"more", value + b"more") == decode(COMMIT_KEY, value)


def test_a_topic_id_of_zeros_is_not_written() -> None:
    record = Record(1, OffsetCommitKey("g", "t", 3), OffsetCommitValue(37, 5, "", 7, topic_id=ZERO_UUID), 4)

    assert (encode(record)[1] or b"").hex().endswith("0700")


def test_fields_that_a_version_lacks_are_dropped() -> None:
    record = Record(1, OffsetCommitKey("g", "t", 3), OffsetCommitValue(37, 5, "", 7, 9, TOPIC_ID), 1)

    assert expect(Record, decode(*encode(record))).value == OffsetCommitValue(37, commit_timestamp=7, expire_timestamp=9)


def test_unknown_tags_are_kept() -> None:
    value = decoded(COMMIT_KEY.hex(), f"0004 0000000000000025 00000005 01 0000000000000007 02 00 10 {TOPIC_ID_HEX} 09 02 aabb")

    assert value.topic_id == TOPIC_ID
    assert value.unknown_tags == ((9, b"\xaa\xbb"),)


def test_flexible_strings_longer_than_one_length_byte() -> None:
    value = "0004 0000000000000025 00000005 8101" + "61" * 128 + "0000000000000007 00"

    assert decoded(COMMIT_KEY.hex(), value).metadata == "a" * 128


@pytest.mark.parametrize(
    ("value", "member"),
    [
        (
            "0000 0008 636f6e73756d6572 00000005 ffff ffff 00000001 0001 6d 0001 63 0002 2f68 00007530 00000001 aa 00000000",
            MemberMetadata("m", None, "c", "/h", -1, 30000, b"\xaa", b""),
        ),
        (
            "0001 0008 636f6e73756d6572 00000005 ffff ffff 00000001 "
            "0001 6d 0001 63 0002 2f68 0000ea60 00007530 00000001 aa 00000000",
            MemberMetadata("m", None, "c", "/h", 60000, 30000, b"\xaa", b""),
        ),
        (
            "0003 0008 636f6e73756d6572 00000005 ffff ffff ffffffffffffffff 00000001 "
            "0001 6d 0001 69 0001 63 0002 2f68 0000ea60 00007530 00000001 aa 00000000",
            MemberMetadata("m", "i", "c", "/h", 60000, 30000, b"\xaa", b""),
        ),
        (
            "0004 09 636f6e73756d6572 00000005 00 00 ffffffffffffffff 02 02 6d 00 02 63 03 2f68 0000ea60 00007530 02 aa 01 00 00",
            MemberMetadata("m", None, "c", "/h", 60000, 30000, b"\xaa", b""),
        ),
    ],
)
def test_classic_groups(value: str, member: MemberMetadata) -> None:
    assert decoded(f"0002 {GROUP_KEY}", value) == GroupMetadataValue("consumer", 5, None, None, -1, (member,))


MEMBER_METADATA = "0000 00 00 02 63 03 2f68 01 00 ffffffff 00"


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("00", ClassicMemberMetadata()),
        ("01 00 01 00", None),
        ("01 00 0c 01 00007530 02 02 72 02 aa 00 00", ClassicMemberMetadata(30000, (ClassicProtocol("r", b"\xaa"),))),
    ],
    ids=["absent: the empty struct", "explicit null", "present"],
)
def test_classic_metadata_of_consumer_group_members(tags: str, expected: ClassicMemberMetadata | None) -> None:
    value = decoded(f"0005 {MEMBER_KEY}", f"{MEMBER_METADATA} {tags}")

    assert value == ConsumerGroupMemberMetadataValue(None, None, "c", "/h", classic_member_metadata=expected)


@pytest.mark.parametrize(
    ("tags", "epochs"),
    [("00", ()), ("01 00 01 00", None), ("01 00 05 02 00000004", (4,))],
    ids=["absent: the empty list", "explicit null", "present"],
)
def test_assignment_epochs(tags: str, epochs: tuple[int, ...] | None) -> None:
    value = decoded(f"0008 {MEMBER_KEY}", f"0000 00000002 00000001 00 02 {TOPIC_ID_HEX} 02 00000003 {tags} 01 00")

    assert value == ConsumerGroupCurrentMemberAssignmentValue(2, 1, 0, (TopicPartitions(TOPIC_ID, (3,), epochs),))


@pytest.mark.parametrize(
    ("tags", "configs"),
    [("00", ()), ("01 01 01 00", None), ("01 01 06 02 02 6b 02 76 00", (KeyValue("k", "v"),))],
    ids=["absent: the empty list", "explicit null", "present"],
)
def test_last_assignment_configs(tags: str, configs: tuple[KeyValue, ...] | None) -> None:
    value = decoded(f"0011 {GROUP_KEY}", f"0000 00000002 0000000000000001 {tags}")

    assert value == StreamsGroupMetadataValue(2, 1, last_assignment_configs=configs)


@pytest.mark.parametrize(
    ("endpoint", "expected"), [("ff", None), ("01 02 68 ffff 00", Endpoint("h", 65535))], ids=["null", "unsigned port"]
)
def test_user_endpoint_is_marked_by_a_signed_byte(endpoint: str, expected: Endpoint | None) -> None:
    value = decoded(f"0013 {MEMBER_KEY}", f"0000 00 00 02 63 03 2f68 ffffffff 00000000 02 70 {endpoint} 01 00")

    assert value == StreamsGroupMemberMetadataValue(None, None, "c", "/h", -1, 0, "p", expected)


def test_type_9_of_4_0() -> None:
    value = decoded(f"0009 {GROUP_KEY}", f"0000 02 {TOPIC_ID_HEX} 02 74 00000004 01 00 00")

    assert value == PartitionMetadataValue((TopicMetadata(TOPIC_ID, "t", 4),))


@pytest.mark.parametrize("record_type", [18, 24, 999, -1, -32768, 32767])
def test_types_without_layout(record_type: int) -> None:
    key = record_type.to_bytes(2, "big", signed=True)

    assert decode(key, b"") == UnknownType(record_type)
    assert decode(key + b"\x00\x01g", None) == UnknownType(record_type)


@pytest.mark.parametrize(("record_type", "version", "highest"), [(1, 5, 4), (1, -1, 4), (2, 5, 4), (3, 1, 0)])
def test_versions_without_layout(record_type: int, version: int, highest: int) -> None:
    key = encode(Record(record_type, KEYS[record_type], None, None))[0]

    assert decode(key, version.to_bytes(2, "big", signed=True)) == UnknownVersion(record_type, version, 0, highest)


KEYS: dict[int, Key] = {1: OffsetCommitKey("g", "t", 3), 2: GroupMetadataKey("g"), 3: GroupKey("g"), 5: MemberKey("g", "m")}


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (None, "0000", (None, "key", 0)),
        ("", None, (None, "key", 0)),
        ("00", None, (None, "key", 0)),
        ("0001 0005 67", None, (1, "key", 4)),
        ("0001 ffff", None, (1, "key", 2)),
        ("0002 0002 ffff", None, (2, "key", 4)),
        ("0002 0001 67", "", (2, "value", 0)),
        ("0002 0001 67", "00", (2, "value", 0)),
        ("0003 0001 67", "0000 0000", (3, "value", 2)),
        ("0002 0001 67", "0000 0000 00000005 ffff ffff 7fffffff", (2, "value", 12)),
        ("0002 0001 67", "0000 0000 00000005 ffff ffff ffffffff", (2, "value", 12)),
        ("0010 0001 67 0001 72", "0000 ffffffff07", (16, "value", 2)),
        ("0010 0001 67 0001 72", "0000 808080808080", (16, "value", 2)),
        ("0003 0001 67", "0000 00000001 01 09 ffffffff0f", (3, "value", 13)),
        ("0001 0001 67 0001 74 00000003", "0004 0000000000000025 00000005 00", (1, "value", 14)),
    ],
    ids=[
        "null key",
        "empty key",
        "key without type",
        "key ends inside a string",
        "null string in a key",
        "not UTF-8",
        "empty value",
        "value without version",
        "value ends inside an integer",
        "count above the bytes left",
        "null array",
        "flexible count above the bytes left",
        "varint without end",
        "size of an unknown tag above the bytes left",
        "null metadata",
    ],
)
def test_malformed_bytes(key: str | None, value: str | None, expected: tuple[int | None, str, int]) -> None:
    outcome = decode(*(None if part is None else bytes.fromhex(part) for part in (key, value)))

    assert isinstance(outcome, Malformed)
    assert (outcome.record_type, outcome.part, outcome.position) == expected
    assert outcome.problem


def test_share_group_metadata_of_4_0_is_malformed() -> None:
    assert isinstance(decode(bytes.fromhex("000b 0001 67"), bytes.fromhex("0000 00000001 00")), Malformed)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Record(18, GroupKey("g"), None, None), "record type 18"),
        (Record(1, OffsetCommitKey("g", "t", 3), OffsetCommitValue(1), 5), "version 5"),
        (Record(1, OffsetCommitKey("g", "t", 3), OffsetCommitValue(1), None), "version None"),
        (Record(1, OffsetCommitKey("g", "t", 2**31), None, None), "OffsetCommitKey.partition: 2147483648 is not an int32"),
        (Record(1, OffsetCommitKey("g" * 32768, "t", 1), None, None), "string of 32768 bytes"),
        (Record(1, OffsetCommitKey("g", "t", 1), OffsetCommitValue(1, metadata=NULL), 3), "OffsetCommitValue.metadata: null"),
    ],
)
def test_what_cannot_be_written(record: Record, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode(record)
