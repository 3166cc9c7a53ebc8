"""Results of the columnar and the scalar codec for the same offset commits, in one form, so that tests can compare them.

The columnar codec reads keys after `unwrap_keys`, as in `PartitionReducer`.
"""

from dataclasses import replace
from uuid import UUID

import numpy as np

from coordinator_core.codec import Record, decode
from coordinator_core.codec.columnar import COMMIT, OTHER, TOMBSTONE, KeyDictionary, decode_offset_commits
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.wrapped_key_kernels import unwrap_keys

Pair = tuple[bytes | None, bytes | None]


def columnar(pairs: list[Pair], keys: KeyDictionary, junk: bytes = b"") -> list[Record | None]:
    """Results of the columnar codec, None for OTHER; `junk` lies between the slices."""
    buffer = bytearray(junk)
    starts: tuple[list[int], list[int]] = ([], [])
    lengths: tuple[list[int], list[int]] = ([], [])
    for pair in pairs:
        for part, start, length in zip(pair, starts, lengths, strict=True):
            start.append(len(buffer))
            length.append(-1 if part is None else len(part))
            buffer += (part or b"") + junk
    data = np.frombuffer(bytes(buffer), np.uint8)
    key_start, key_length = unwrap_keys(data, np.array(starts[0], np.int64), np.array(lengths[0], np.int32))
    columns = decode_offset_commits(
        data,
        key_start,
        key_length,
        np.array(starts[1], np.int64),
        np.array(lengths[1], np.int32),
        keys,
    )
    groups, topics, partitions = (
        column.tolist() if isinstance(column, np.ndarray) else column.to_pylist() for column in keys.names()
    )
    texts = columns.metadata().to_pylist()
    decoded: list[Record | None] = []
    for i, (status, key_index) in enumerate(zip(columns.status.tolist(), columns.key_index.tolist(), strict=True)):
        if status == OTHER:
            assert key_index == -1
            decoded.append(None)
            continue
        key = OffsetCommitKey(groups[key_index], topics[key_index], partitions[key_index])
        record_type = int.from_bytes(data[key_start[i] : key_start[i] + 2].tobytes(), "big")
        if status == TOMBSTONE:
            decoded.append(Record(record_type, key, None, None))
            continue
        assert status == COMMIT
        value = columns.values[i]
        topic_id = b"".join(int(value[half]).to_bytes(8, "big", signed=True) for half in ("topic_id_high", "topic_id_low"))
        fields = (int(value[name]) for name in ("offset", "leader_epoch", "commit_timestamp", "expire_timestamp"))
        offset, epoch, committed, expires = fields
        commit = OffsetCommitValue(offset, epoch, texts[i], committed, expires, UUID(bytes=topic_id))
        decoded.append(Record(record_type, key, commit, int(value["version"])))
    return decoded


def scalar(pair: Pair) -> Record | None:
    """Results of the scalar codec in the same form."""
    record = decode(*pair)
    if not isinstance(record, Record) or not isinstance(record.key, OffsetCommitKey):
        return None
    value = record.value
    if not isinstance(value, OffsetCommitValue):
        return record
    # the columns do not hold tags
    return Record(record.record_type, record.key, replace(value, unknown_tags=()), record.value_version)
