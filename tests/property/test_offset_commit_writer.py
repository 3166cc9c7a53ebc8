"""The direct writer of offset commits writes the bytes of the compiled one, and leaves what it cannot write to it."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from record_strategies import records

from coordinator_core.codec import Record, encode
from coordinator_core.codec.envelope import seal_envelope
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.offset_commit_writer import offset_commit_bytes
from coordinator_core.codec.records import _CODECS

_KEY = OffsetCommitKey("group", "topic", 3)
_VERSIONS = st.sampled_from([(record_type, version) for record_type in (0, 1) for version in range(5)])


def compiled(record: Record) -> Any:
    """The bytes, or the type of the error."""
    try:
        return seal_envelope(_CODECS, record.record_type, record.key, record.value, record.value_version)
    except ValueError:
        return ValueError


def written(record: Record) -> Any:
    try:
        return encode(record)
    except ValueError:
        return ValueError


@given(_VERSIONS.flatmap(lambda each: records(*each)))
@example(Record(1, OffsetCommitKey("g" * 32768, "t", 0), OffsetCommitValue(1), 3))
@example(Record(1, OffsetCommitKey("g", "t", 1 << 31), OffsetCommitValue(1), 3))
@example(Record(1, _KEY, OffsetCommitValue(1 << 63), 4))
@example(Record(1, _KEY, OffsetCommitValue(1, metadata="m" * 32768), 3))
@example(Record(1, _KEY, OffsetCommitValue(1, metadata="ü" * 64), 4))
@example(Record(1, _KEY, OffsetCommitValue(1, metadata="m" * 126), 4))
@example(Record(1, _KEY, OffsetCommitValue(1), None))
@example(Record(0, _KEY, None, None))
def test_same_bytes(record: Record) -> None:
    assert written(record) == compiled(record)


def test_current_versions_are_written_directly() -> None:
    for version in (3, 4):
        assert offset_commit_bytes(1, _KEY, OffsetCommitValue(5, 2, "m", 1), version) is not None
    assert offset_commit_bytes(1, _KEY, None, None) is not None
