"""Requests above the limit of decoding: Produce, whose records are passed on as bytes and cost nothing to decode."""

from struct import Struct, error

from coordinator_core.codec.wire import Unreadable, read_uvarint
from coordinator_core.protocol import apis
from coordinator_core.wire.errors import MalformedMessage
from coordinator_core.wire.header_codec import read_header

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_UUID_BYTES = 16
#: Acks and timeout.
_ACKS_BYTES = 6


def may_be_large(start: bytes | bytearray) -> bool:
    """Whether a frame that begins with these two bytes may exceed the limit of decoding."""
    return int.from_bytes(start) == apis.PRODUCE.number


def is_decoded_within(frame: bytes, most_bytes: int) -> bool:
    """Whether a Produce request has at most this many bytes that are not records.

    Takes time for that number of bytes only. MalformedMessage requests are left to their decoder, which needs no more.
    """
    try:
        header, position = read_header(frame)
        if header.version not in apis.PRODUCE.versions.all:
            return True
        cursor = _Cursor(frame, position, most_bytes - position, apis.PRODUCE.versions.is_flexible(header.version))
        _walk(cursor, header.version)
    except (MalformedMessage, Unreadable, IndexError, error):
        return True
    except _LimitReached:
        return False
    return True


class _LimitReached(Exception):
    """More bytes than allowed are not records."""


class _Cursor:
    """A position in a frame; `left` bytes may still be decoded. Raises Unreadable, IndexError or struct.error at the end."""

    def __init__(self, frame: bytes, position: int, left: int, is_flexible: bool) -> None:
        self._frame = frame
        self._position = position
        self._left = left
        self._is_flexible = is_flexible

    def take(self, count: int) -> None:
        self._position += count
        self._left -= count
        if self._left < 0:
            raise _LimitReached
        if self._position > len(self._frame):
            raise IndexError

    def string(self) -> None:
        if self._is_flexible:
            length = self._compact_length()
            self.take(length)
        else:
            (length,) = _INT16.unpack_from(self._frame, self._position)
            self.take(_INT16.size + max(length, 0))

    def length(self) -> int:
        """Read the number of elements of an array, or of bytes; 0 for null."""
        if self._is_flexible:
            return self._compact_length()
        (length,) = _INT32.unpack_from(self._frame, self._position)
        self.take(_INT32.size)
        return max(int(length), 0)

    def records(self) -> None:
        """Skip records, which are not decoded."""
        length = self.length()
        self._position += length

    def tags(self) -> None:
        """Skip tagged fields."""
        if not self._is_flexible:
            return
        for _ in range(self._varint()):
            self._varint()
            size = self._varint()
            self.take(size)

    def _compact_length(self) -> int:
        return max(self._varint() - 1, 0)

    def _varint(self) -> int:
        value, end = read_uvarint(self._frame, self._position)
        self.take(end - self._position)
        return value


def _walk(cursor: _Cursor, version: int) -> None:
    cursor.tags()
    if apis.PRODUCE.has_field(version, "transactional_id"):
        cursor.string()
    cursor.take(_ACKS_BYTES)
    for _ in range(cursor.length()):
        if apis.PRODUCE.has_field(version, "topic_id"):
            cursor.take(_UUID_BYTES)
        else:
            cursor.string()
        for _ in range(cursor.length()):
            cursor.take(_INT32.size)
            cursor.records()
            cursor.tags()
        cursor.tags()
    cursor.tags()
