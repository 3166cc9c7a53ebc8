"""Readers of flexible versions (KIP-482): compact strings, bytes and arrays, topic ids, empty sections of tagged fields.

Readers take (frame, position) and return the value with the position after it. They raise one of `UNEXPECTED` for a value that
they do not expect. A slice may end early at the end of the frame: the caller compares the last position with its length.
"""

from struct import error
from uuid import UUID

from coordinator_core.codec.wire import Unreadable, cached_uuid, read_uvarint

#: Length of a compact string or array that is null.
_NULL = 0
#: A length up to this one has one byte.
_LONGEST_BYTE = 0x7F
_UUID_BYTES = 16


class Unexpected(Exception):
    """A value that the library reads: null, or a tagged field."""


#: Errors of the readers, with those of bytes that end early and of text that is not UTF-8.
UNEXPECTED = (Unexpected, Unreadable, IndexError, UnicodeDecodeError, error)


def read_length(frame: bytes, position: int) -> tuple[int, int]:
    """Read the length of a string, of bytes or of an array, which must not be null."""
    stored = frame[position]
    if stored > _LONGEST_BYTE:
        stored, position = read_uvarint(frame, position)
    else:
        position += 1
    if stored == _NULL:
        raise Unexpected
    return stored - 1, position


def read_string(frame: bytes, position: int) -> tuple[str, int]:
    """Read a string that must not be null."""
    length, position = read_length(frame, position)
    end = position + length
    return frame[position:end].decode(), end


def read_nullable_string(frame: bytes, position: int) -> tuple[str | None, int]:
    """Read a string or null."""
    if frame[position] == _NULL:
        return None, position + 1
    return read_string(frame, position)


def read_nullable_bytes(frame: bytes, position: int) -> tuple[bytes | None, int]:
    """Read bytes or null."""
    if frame[position] == _NULL:
        return None, position + 1
    length, position = read_length(frame, position)
    end = position + length
    return frame[position:end], end


def read_topic_id(frame: bytes, position: int) -> tuple[UUID, int]:
    """Read a topic id."""
    raw, end = frame[position : position + _UUID_BYTES], position + _UUID_BYTES
    if len(raw) != _UUID_BYTES:
        raise Unexpected
    return cached_uuid(raw), end


def skip_no_tags(frame: bytes, position: int) -> int:
    """Skip a section without tagged fields."""
    if frame[position]:
        raise Unexpected
    return position + 1
