"""Primitives of flexible versions (KIP-482): compact strings, bytes and arrays, topic ids, empty sections of tagged fields.

Readers take (frame, position) and return the value with the position after it. They raise one of `UNEXPECTED` for a value that
they do not expect. A slice may end early at the end of the frame: the caller compares the last position with its length.
"""

from functools import lru_cache
from struct import error
from uuid import UUID

NO_TAGS = b"\x00"
#: Length of a compact string or array that is null.
_NULL = 0
#: A length up to this one has one byte.
_LONGEST_BYTE = 0x7F
_LONGEST_STRING = 0x7FFF
_UUID_BYTES = 16


class Unexpected(Exception):
    """A value that the library reads: null, a tagged field, a length of more than five bytes."""


#: Errors of the readers, with those of bytes that end early and of text that is not UTF-8.
UNEXPECTED = (Unexpected, IndexError, UnicodeDecodeError, error)


def read_length(frame: bytes, position: int) -> tuple[int, int]:
    """Read the length of a string, of bytes or of an array, which must not be null."""
    stored = frame[position]
    position += 1
    if stored > _LONGEST_BYTE:
        stored, position = _rest_of_varint(frame, position, stored & _LONGEST_BYTE)
    if stored == _NULL:
        raise Unexpected
    return stored - 1, position


def _rest_of_varint(frame: bytes, position: int, value: int) -> tuple[int, int]:
    for number in range(1, 5):
        byte = frame[position]
        position += 1
        value |= (byte & _LONGEST_BYTE) << 7 * number
        if byte <= _LONGEST_BYTE:
            return value, position
    raise Unexpected


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
    end = position + _UUID_BYTES
    return _uuid(frame[position:end]), end


@lru_cache(maxsize=4096)
def _uuid(raw: bytes) -> UUID:
    """Return a cached UUID: the topic ids repeat."""
    if len(raw) != _UUID_BYTES:
        raise Unexpected
    return UUID(bytes=raw)


def skip_no_tags(frame: bytes, position: int) -> int:
    """Skip a section without tagged fields."""
    if frame[position]:
        raise Unexpected
    return position + 1


def length_bytes(length: int) -> bytes:
    """Return the length of a string, of bytes or of an array."""
    stored = length + 1
    if stored <= _LONGEST_BYTE:
        return _SHORT[stored]
    encoded = bytearray()
    while stored > _LONGEST_BYTE:
        encoded.append(stored & _LONGEST_BYTE | 0x80)
        stored >>= 7
    encoded.append(stored)
    return bytes(encoded)


_SHORT = tuple(bytes([number]) for number in range(_LONGEST_BYTE + 1))


def string_bytes(text: str | None) -> bytes:
    """Return a string or null. Raises Unexpected for one that is too long."""
    if text is None:
        return _SHORT[_NULL]
    encoded = text.encode()
    if len(encoded) > _LONGEST_STRING:
        raise Unexpected
    return length_bytes(len(encoded)) + encoded
