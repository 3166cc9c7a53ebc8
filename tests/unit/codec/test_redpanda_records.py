"""Records as Redpanda writes them: members with a version of their own, and wrapped keys of tombstones."""

from dataclasses import replace
from struct import pack
from typing import Any

import numpy as np
import pytest
from redpanda_records import (
    GroupMember,
    group_metadata_key,
    group_metadata_value,
    member_state,
    offset_metadata_key,
    offset_metadata_value,
    wrapped,
)

from coordinator_core.codec import ClassicGroupDecoder, Malformed, Record, UnknownType, decode, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.wrapped_key_kernels import unwrap_keys
from coordinator_core.log.columns import columns_of
from coordinator_core.log.entries import LogRecord
from coordinator_core.reduction.bulk_load import load_columns
from coordinator_core.state.era import REDPANDA
from coordinator_core.state.group_state import GroupState

ALICE = GroupMember("c1-58b6b6f8-6c5c-4f0b-9d43-1a4d0c7a3e11", None, "c1", "10.0.0.7", 300_000, 45_000, b"sub", b"assigned")
BOB = GroupMember("i2-0b3c1a6e-93f4-4a6a-8c53-5d7d7f6f0a02", "i2", "c2", "10.0.0.8", 60_000, 10_000, b"", b"")
KEY = group_metadata_key("g")
NOW_MS = 1_800_000_000_000


def metadata_of(member: GroupMember) -> MemberMetadata:
    return MemberMetadata(*member[:-1])


def test_golden_bytes_of_a_group() -> None:
    """Written out by hand after `group_metadata_value::encode` and `member_state::encode`."""
    value = bytes.fromhex(
        "0003 0008 636f6e73756d6572 00000007 0005 72616e6765 0003 632d31 0000018bcfe56800 00000001"
        "0003 0003 632d31 ffff 0001 63 0009 3132372e302e302e31 00000bb8 000007d0 00000002 0102 00000001 ff"
    )
    member = MemberMetadata("c-1", None, "c", "127.0.0.1", 3000, 2000, b"\x01\x02", b"\xff")
    group = GroupMetadataValue("consumer", 7, "range", "c-1", 1_700_000_000_000, (member,))
    assert decode(bytes.fromhex("0002 0001 67"), value) == Record(2, GroupMetadataKey("g"), group, 3)


def test_a_group_is_the_record_that_kafka_would_write() -> None:
    record = decode(KEY, group_metadata_value((ALICE, BOB), leader=ALICE.id))
    assert isinstance(record, Record)
    assert isinstance(record.value, GroupMetadataValue)
    assert record.value.members == (metadata_of(ALICE), metadata_of(BOB))
    again = encode(record)
    assert again[1] != group_metadata_value((ALICE, BOB), leader=ALICE.id)
    assert decode(*again) == record


def test_a_group_without_members_has_the_bytes_of_kafka() -> None:
    value = group_metadata_value((), protocol=None)
    record = decode(KEY, value)
    assert isinstance(record, Record)
    assert encode(record) == (KEY, value)


@pytest.mark.parametrize(
    ("version", "lacks"),
    [
        (2, {"group_instance_id": None}),
        (1, {"group_instance_id": None}),
        (0, {"group_instance_id": None, "rebalance_timeout": -1}),
    ],
)
def test_members_of_older_versions(version: int, lacks: dict[str, Any]) -> None:
    record = decode(KEY, group_metadata_value((BOB._replace(version=version), ALICE)))
    assert isinstance(record, Record)
    assert isinstance(record.value, GroupMetadataValue)
    assert record.value.members == (replace(metadata_of(BOB), **lacks), metadata_of(ALICE))


@pytest.mark.parametrize(
    "value",
    [
        group_metadata_value((ALICE, BOB))[:-1],
        group_metadata_value((ALICE, BOB)) + b"\x00",
        group_metadata_value((ALICE._replace(version=4),)),
        group_metadata_value((ALICE._replace(version=-1),)),
        group_metadata_value((ALICE,))[: -len(member_state(ALICE))] + b"\x00",
    ],
    ids=["cut off", "bytes after it", "member version 4", "member version -1", "half a member version"],
)
def test_what_neither_layout_explains_is_malformed(value: bytes) -> None:
    assert isinstance(decode(KEY, value), Malformed)


def test_bytes_that_are_whole_in_both_layouts_are_those_of_kafka() -> None:
    """Planted: no member id of Redpanda has such bytes, because it ends with a UUID in text."""
    value = group_metadata_value((_member_with_fields_of_kafka_in_its_id(),))
    record = decode(KEY, value)
    assert isinstance(record, Record)
    assert isinstance(record.value, GroupMetadataValue)
    assert encode(record) == (KEY, value)
    assert record.value.members[0].member_id == "\x00\x13a"


def _member_with_fields_of_kafka_in_its_id() -> GroupMember:
    """In Kafka's layout the member version is the length of a member id, and the id has the fields up to the subscription."""
    member = GroupMember("", None, "", "", 0, 0, b"", bytes(4))
    # what follows the id, without the last four bytes: in Kafka's layout they are the length of the assignment
    subscription = len(member_state(member)) - len(pack(">hh", 3, 0)) - 4
    return member._replace(id="a" + pack(">hhhiii", 0, 0, 0, 0, 0, subscription).decode())


def test_the_cache_of_members_knows_the_dialect() -> None:
    decoder = ClassicGroupDecoder()
    values = [group_metadata_value((ALICE, BOB), generation=number) for number in range(3)]
    assert [decoder.decode(KEY, value) for value in values] == [decode(KEY, value) for value in values]


@pytest.mark.parametrize("key", [KEY, offset_metadata_key("g", "t", 7), group_metadata_key(""), group_metadata_key("x" * 252)])
def test_wrapped_tombstones(key: bytes) -> None:
    assert decode(wrapped(key), None) == decode(key, None)
    assert isinstance(decode(key, None), Record)


def test_a_wrapped_key_of_256_bytes_looks_like_a_commit_of_a_group_without_a_name() -> None:
    key = group_metadata_key("x" * 252)
    assert wrapped(key)[:4] == bytes.fromhex("0001 0000")
    assert decode(wrapped(key), None) == Record(2, GroupMetadataKey("x" * 252), None, None)


def test_a_key_of_kafka_with_the_length_of_a_wrapped_one_is_not_unwrapped() -> None:
    """No topic has 250 characters, and if one had, its length would not be a type."""
    key = offset_metadata_key("", "t" * 250, 7)
    assert int.from_bytes(key[:4], "little") == len(key) - 4
    assert decode(key, None) == Record(1, OffsetCommitKey("", "t" * 250, 7), None, None)


@pytest.mark.parametrize(
    "key", [wrapped(b""), wrapped(b"\x00"), wrapped(bytes.fromhex("0003 0001 67")), b"\x09\x00\x00\x00" + KEY]
)
def test_other_keys_with_a_length_in_front_are_unknown(key: bytes) -> None:
    assert isinstance(decode(key, None), UnknownType | Malformed)


def test_commits() -> None:
    key = offset_metadata_key("g", "t", 7)
    plain = offset_metadata_value(42, leader_epoch=5, metadata="m", commit_timestamp=11)
    assert decode(key, plain) == Record(1, OffsetCommitKey("g", "t", 7), OffsetCommitValue(42, 5, "m", 11), 3)
    expiring = offset_metadata_value(42, commit_timestamp=11, expiry_timestamp=12)
    assert decode(key, expiring) == Record(1, OffsetCommitKey("g", "t", 7), OffsetCommitValue(42, -1, "", 11, 12), 1)


def test_the_columns_unwrap_the_same_keys() -> None:
    keys = [KEY, wrapped(KEY), offset_metadata_key("g", "t", 7), wrapped(offset_metadata_key("g", "t", 7)), b"", wrapped(b"")]
    lengths = np.array([*map(len, keys), -1], np.int32)
    starts = np.concatenate([[0], np.cumsum(lengths[:-1])]).astype(np.int64)
    data = np.frombuffer(b"".join(keys), np.uint8)
    found = unwrap_keys(data, starts, lengths)
    begins, sizes = (each.tolist() for each in found)
    slices = [data[start : start + length].tobytes() for start, length in zip(begins, sizes, strict=True) if length >= 0]
    assert slices == [KEY, KEY, keys[2], keys[2], b"", wrapped(b"")]
    unchanged = unwrap_keys(data, starts[:1], lengths[:1])
    assert unchanged[0].tolist() == [0]


def test_a_wrapped_tombstone_removes_the_offset_before_it() -> None:
    """By a load in columns: the order of commits and tombstones of one key is that of the log."""
    key = offset_metadata_key("g", "t", 7)
    written = [
        (KEY, group_metadata_value((ALICE,))),
        (key, offset_metadata_value(41)),
        (wrapped(key), None),
        (offset_metadata_key("g", "t", 8), offset_metadata_value(1)),
        (wrapped(offset_metadata_key("h", "t", 0)), None),
        (group_metadata_key("h"), group_metadata_value((BOB,))),
        (wrapped(group_metadata_key("h")), None),
    ]
    records = [LogRecord(0, offset, NOW_MS, *pair) for offset, pair in enumerate(written)]
    state = GroupState(REDPANDA, NOW_MS)
    anomalies = load_columns(state, 0, [columns_of(records, next_offset=len(records))])
    assert not anomalies
    assert {partition.partition: offset.offset for partition, offset in state.committed("g").items()} == {8: 1}
    assert state.group("h") is None
