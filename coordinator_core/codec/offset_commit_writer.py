"""Direct writer of offset commits, the most frequent records: the bytes of the compiled writer, in a third of its time."""

from struct import Struct, error

from coordinator_core.codec.messages.offsets import ZERO_UUID, OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.wire import MAX_STRING_LENGTH

#: Type, length of the group id.
_TYPE = Struct(">hh")
_LENGTH = Struct(">h")
_PARTITION = Struct(">i")
#: Version, offset, leader epoch; in version 4 with the length of metadata of less than 127 bytes.
_VALUE_3 = Struct(">hqih")
_VALUE_4 = Struct(">hqiB")
_TIMESTAMP = Struct(">q")
_NO_TAGS = b"\x00"
#: One tagged field: the topic id, tag 0, of 16 bytes.
_TOPIC_ID = b"\x01\x00\x10"
_LONGEST_SHORT = 126


def offset_commit_bytes(
    record_type: int, key: OffsetCommitKey, value: OffsetCommitValue | None, version: int | None
) -> tuple[bytes, bytes | None] | None:
    """Return key and value of a tombstone or a value of version 3 or 4; None for others and for what cannot be written."""
    try:
        group, topic = key.group.encode(), key.topic.encode()
        if len(group) > MAX_STRING_LENGTH or len(topic) > MAX_STRING_LENGTH:
            return None
        key_bytes = b"".join(
            (_TYPE.pack(record_type, len(group)), group, _LENGTH.pack(len(topic)), topic, _PARTITION.pack(key.partition))
        )
        if value is None:
            return key_bytes, None
        value_bytes = _value_bytes(value, version)
    except (error, AttributeError, UnicodeEncodeError):
        # a number out of range, a null or a lone surrogate, which the general writer reports
        return None
    return None if value_bytes is None else (key_bytes, value_bytes)


def _value_bytes(value: OffsetCommitValue, version: int | None) -> bytes | None:
    metadata = value.metadata.encode()
    size = len(metadata)
    if version == 3 and size <= MAX_STRING_LENGTH:
        head = _VALUE_3.pack(version, value.offset, value.leader_epoch, size)
        return head + metadata + _TIMESTAMP.pack(value.commit_timestamp)
    if version != 4 or size > _LONGEST_SHORT or value.unknown_tags:
        return None
    head = _VALUE_4.pack(version, value.offset, value.leader_epoch, size + 1) + metadata
    topic_id = value.topic_id
    tags = _NO_TAGS if topic_id is ZERO_UUID or topic_id == ZERO_UUID else _TOPIC_ID + topic_id.bytes
    return head + _TIMESTAMP.pack(value.commit_timestamp) + tags
