"""Codec of the headers of requests and responses."""

import struct

from coordinator_core.codec.wire import Unreadable, read_uvarint
from coordinator_core.protocol.api import RequestHeader
from coordinator_core.wire.errors import MalformedMessage
from coordinator_core.wire.text import decode_text

_FIXED = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")


def read_header(frame: bytes) -> tuple[RequestHeader, int]:
    """Read the header without its tagged fields; return it with the position after it. Raises MalformedMessage.

    The API version decides whether tagged fields follow.
    """
    if len(frame) < _FIXED.size:
        raise MalformedMessage(f"a request header has at least {_FIXED.size} bytes, the frame has {len(frame)}", len(frame))
    api_key, version, correlation_id, length = _FIXED.unpack_from(frame)
    if length < 0:
        return RequestHeader(api_key, version, correlation_id, None), _FIXED.size
    end = _FIXED.size + length
    if end > len(frame):
        raise MalformedMessage(f"the client id has {length} bytes, but only {len(frame) - _FIXED.size} are left", _FIXED.size)
    return RequestHeader(api_key, version, correlation_id, decode_text(frame[_FIXED.size : end])), end


def skip_tags(frame: bytes, position: int, header: RequestHeader | None) -> int:
    """Skip the tagged fields of a header, which has no known ones; return the position after them. Raises MalformedMessage."""
    if frame[position : position + 1] == b"\x00":
        return position + 1
    count, position = _varint(frame, position, header)
    for _ in range(count):
        _, position = _varint(frame, position, header)
        size, position = _varint(frame, position, header)
        position += size
    if position > len(frame):
        raise MalformedMessage(
            f"tagged fields of the header end at byte {position}, after the end of the frame", len(frame), header
        )
    return position


def _varint(frame: bytes, position: int, header: RequestHeader | None) -> tuple[int, int]:
    """Read an unsigned varint of at most five bytes."""
    try:
        return read_uvarint(frame, position)
    except Unreadable as error:
        raise MalformedMessage("a varint has more than five bytes, or is cut off", position, header) from error


def correlation_id_of(frame: bytes) -> int:
    """Return the correlation id of a response. Raises MalformedMessage."""
    if len(frame) < _CORRELATION_ID.size:
        raise MalformedMessage(f"a response has at least {_CORRELATION_ID.size} bytes, the frame has {len(frame)}", len(frame))
    correlation_id: int = _CORRELATION_ID.unpack_from(frame)[0]
    return correlation_id


def response_body(frame: bytes, flexible: bool) -> int:
    """Return the position of the body of a response. Raises MalformedMessage."""
    return skip_tags(frame, _CORRELATION_ID.size, None) if flexible else _CORRELATION_ID.size
