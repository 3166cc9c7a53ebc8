"""Primitives of Kafka's wire format: bounds-checked readers and writers, plain and flexible (KIP-482).

A reader takes (buffer, position, sink), appends the value to `sink` and returns the position after it. A writer takes
(out, value). Malformed bytes raise `Unreadable` with the position of the field; `decode` functions turn it into `Malformed`, so
it never leaves this package. Values that cannot be written raise ValueError. Every length and count is compared with the bytes
left before memory is allocated.

Where Kafka's generated readers are lax, these are too: any negative length is a null, bits of a varint above the 32nd are
dropped. They are stricter in one point: text that is not UTF-8 is rejected, where Java inserts replacement characters.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from struct import Struct, error, unpack_from
from typing import Any
from uuid import UUID

Reader = Callable[[bytes, int, list[Any]], int]
Writer = Callable[[bytearray, Any], None]
#: (buffer, position, count) → the elements of an array and the position after them.
ElementsReader = Callable[[bytes, int, int], tuple[tuple[Any, ...], int]]

#: Longest string of the protocol, in bytes: the limit of plain length fields; generated readers reject longer compact strings.
MAX_STRING_LENGTH = 0x7FFF
#: An unsigned varint above this is negative in Java, which reads it into an int.
MAX_INT32 = 0x7FFFFFFF

INT_FORMATS = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q"}

_INT16 = Struct(">h")
_INT32 = Struct(">i")


class Unreadable(Exception):
    """The bytes at `position` do not match the layout."""

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(problem)
        self.position = position
        self.problem = problem


def ends_early(buffer: bytes, position: int, needed: int) -> Unreadable:
    return Unreadable(position, f"needs {needed} bytes, {max(len(buffer) - position, 0)} are left")


def read_uvarint(buffer: bytes, position: int) -> tuple[int, int]:
    """Read an unsigned varint of up to five bytes: (unsigned 32-bit number, position after it)."""
    value = 0
    for index in range(5):
        if position + index >= len(buffer):
            raise Unreadable(position, "varint ends early")
        byte = buffer[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & 0xFFFFFFFF, position + index + 1
    raise Unreadable(position, "varint longer than five bytes")


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _read_plain_length(width: Struct) -> Callable[[bytes, int], tuple[int, int]]:
    def read(buffer: bytes, position: int) -> tuple[int, int]:
        try:
            (length,) = width.unpack_from(buffer, position)
        except error:
            raise ends_early(buffer, position, width.size) from None
        return length, position + width.size

    return read


def _read_compact_length(buffer: bytes, position: int) -> tuple[int, int]:
    stored, position = read_uvarint(buffer, position)
    return (stored - 1 if stored <= MAX_INT32 + 1 else -1), position


read_int16_length = _read_plain_length(_INT16)
read_int32_length = _read_plain_length(_INT32)


def length_reader(flexible: bool, is_string: bool) -> Callable[[bytes, int], tuple[int, int]]:
    """Return a reader of lengths of strings, or of bytes and arrays; a null has a negative length."""
    if flexible:
        return _read_compact_length
    return read_int16_length if is_string else read_int32_length


def length_writer(flexible: bool, is_string: bool) -> Writer:
    """Return a writer of lengths of strings, or of bytes and arrays; the length of a null is None."""
    width = _INT16 if is_string else _INT32

    def write(out: bytearray, length: int | None) -> None:
        if flexible:
            write_uvarint(out, 0 if length is None else length + 1)
        else:
            out += width.pack(-1 if length is None else length)

    return write


def ints_reader(formats: str) -> Reader:
    """Return a reader of consecutive integers of fixed width, in one step."""
    layout = Struct(">" + formats)
    unpack, size = layout.unpack_from, layout.size

    def read(buffer: bytes, position: int, sink: list[Any]) -> int:
        try:
            sink += unpack(buffer, position)
        except error:
            raise ends_early(buffer, position, size) from None
        return position + size

    return read


def int_writer(int_type: str) -> Writer:
    pack = Struct(">" + INT_FORMATS[int_type]).pack

    def write(out: bytearray, value: int) -> None:
        try:
            out += pack(value)
        except error:
            raise ValueError(f"{value!r} is not an {int_type}") from None

    return write


def string_reader(flexible: bool, nullable: bool) -> Reader:
    read_length = length_reader(flexible, is_string=True)

    def read(buffer: bytes, position: int, sink: list[Any]) -> int:
        length, start = read_length(buffer, position)
        end = start + length
        if length < 0:
            if not nullable:
                raise Unreadable(position, "null string in a field that is not nullable")
            sink.append(None)
            return start
        if end > len(buffer):
            raise ends_early(buffer, start, length)
        if length > MAX_STRING_LENGTH:
            raise Unreadable(position, f"string of {length} bytes")
        try:
            sink.append(buffer[start:end].decode())
        except UnicodeDecodeError as failure:
            raise Unreadable(start + failure.start, "not UTF-8") from None
        return end

    return read


def string_writer(flexible: bool, nullable: bool) -> Writer:
    write_length = length_writer(flexible, is_string=True)

    def write(out: bytearray, value: str | None) -> None:
        if value is None:
            _refuse_null(nullable)
            write_length(out, None)
            return
        encoded = value.encode()
        if len(encoded) > MAX_STRING_LENGTH:
            raise ValueError(f"string of {len(encoded)} bytes; the protocol allows at most {MAX_STRING_LENGTH}")
        write_length(out, len(encoded))
        out += encoded

    return write


def bytes_reader(flexible: bool, nullable: bool) -> Reader:
    read_length = length_reader(flexible, is_string=False)

    def read(buffer: bytes, position: int, sink: list[Any]) -> int:
        length, start = read_length(buffer, position)
        if length < 0:
            if not nullable:
                raise Unreadable(position, "null bytes in a field that is not nullable")
            sink.append(None)
            return start
        if start + length > len(buffer):
            raise ends_early(buffer, start, length)
        sink.append(buffer[start : start + length])
        return start + length

    return read


def bytes_writer(flexible: bool, nullable: bool) -> Writer:
    write_length = length_writer(flexible, is_string=False)

    def write(out: bytearray, value: bytes | None) -> None:
        if value is None:
            _refuse_null(nullable)
            write_length(out, None)
            return
        write_length(out, len(value))
        out += value

    return write


@lru_cache(maxsize=4096)
def cached_uuid(raw: bytes) -> UUID:
    """Return a cached UUID: the few topic ids repeat, and building a UUID takes longer than the rest of an offset commit."""
    return UUID(bytes=raw)


def read_uuid(buffer: bytes, position: int, sink: list[Any]) -> int:
    end = position + 16
    if end > len(buffer):
        raise ends_early(buffer, position, 16)
    sink.append(cached_uuid(buffer[position:end]))
    return end


def write_uuid(out: bytearray, value: UUID) -> None:
    out += value.bytes


def array_reader(read_elements: ElementsReader, flexible: bool, nullable: bool) -> Reader:
    """Return a reader of an array as a tuple. A count above the bytes left is rejected before the elements are read."""
    read_length = length_reader(flexible, is_string=False)

    def read(buffer: bytes, position: int, sink: list[Any]) -> int:
        count, start = read_length(buffer, position)
        if count < 0:
            if not nullable:
                raise Unreadable(position, "null array in a field that is not nullable")
            sink.append(None)
            return start
        if count > len(buffer) - start:
            raise Unreadable(position, f"array of {count} elements, {len(buffer) - start} bytes are left")
        elements, end = read_elements(buffer, start, count)
        sink.append(elements)
        return end

    return read


def array_writer(write_element: Writer, flexible: bool, nullable: bool) -> Writer:
    write_length = length_writer(flexible, is_string=False)

    def write(out: bytearray, value: tuple[Any, ...] | None) -> None:
        if value is None:
            _refuse_null(nullable)
            write_length(out, None)
            return
        write_length(out, len(value))
        for element in value:
            write_element(out, element)

    return write


def elements_reader(read_element: Reader) -> ElementsReader:
    def read(buffer: bytes, position: int, count: int) -> tuple[tuple[Any, ...], int]:
        elements: list[Any] = []
        for _ in range(count):
            position = read_element(buffer, position, elements)
        return tuple(elements), position

    return read


def int_elements_reader(int_type: str) -> ElementsReader:
    int_format = INT_FORMATS[int_type]
    size = Struct(">" + int_format).size

    def read(buffer: bytes, position: int, count: int) -> tuple[tuple[Any, ...], int]:
        end = position + count * size
        if end > len(buffer):
            raise ends_early(buffer, position, count * size)
        return unpack_from(f">{count}{int_format}", buffer, position), end

    return read


def nullable_struct_reader(read_struct: Reader, tagged: bool) -> Reader:
    """Return a reader of a struct after its presence mark: int8 -1 or 1, and for tagged fields varint 0 or 1."""

    def read(buffer: bytes, position: int, sink: list[Any]) -> int:
        if tagged:
            mark, start = read_uvarint(buffer, position)
            present = 0 < mark <= MAX_INT32
        else:
            if position >= len(buffer):
                raise ends_early(buffer, position, 1)
            start = position + 1
            present = buffer[position] < 0x80
        if present:
            return read_struct(buffer, start, sink)
        sink.append(None)
        return start

    return read


def nullable_struct_writer(write_struct: Writer, tagged: bool) -> Writer:
    absent, present = (b"\x00", b"\x01") if tagged else (b"\xff", b"\x01")

    def write(out: bytearray, value: Any) -> None:
        if value is None:
            out += absent
            return
        out += present
        write_struct(out, value)

    return write


def versioned_reader(read_struct: Mapping[int, Reader]) -> Reader:
    """Return a reader of a struct after its own version (int16), which selects one of `read_struct`."""
    versions = f"{min(read_struct)}–{max(read_struct)}"

    def read(buffer: bytes, position: int, sink: list[Any]) -> int:
        if len(buffer) - position < _INT16.size:
            raise ends_early(buffer, position, _INT16.size)
        (version,) = _INT16.unpack_from(buffer, position)
        if version not in read_struct:
            raise Unreadable(position, f"version {version} of a struct is not in {versions}")
        return read_struct[version](buffer, position + _INT16.size, sink)

    return read


def versioned_writer(version: int, write_struct: Writer) -> Writer:
    prefix = _INT16.pack(version)

    def write(out: bytearray, value: Any) -> None:
        out += prefix
        write_struct(out, value)

    return write


def _refuse_null(nullable: bool) -> None:
    if not nullable:
        raise ValueError("null in a field that is not nullable")
