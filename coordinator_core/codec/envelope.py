"""Envelope of the records in the coordinators' topics: a type before the key, a version before the value."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any, TypeVar

from coordinator_core.codec.compiler import compiler
from coordinator_core.codec.outcomes import Malformed, Undecodable, UnknownType, UnknownVersion
from coordinator_core.codec.schema import MessageLayout
from coordinator_core.codec.wire import Reader, Unreadable, Writer

_INT16 = Struct(">h")

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RecordCodec:
    """Readers and writers of one record type: one pair for its key, and one per version, from 0, for its value.

    `read_dialect` has the readers of a second layout of the value, by version; most types have none.
    """

    read_key: Reader
    write_key: Writer
    read_value: tuple[Reader, ...]
    write_value: tuple[Writer, ...]
    read_dialect: tuple[Reader, ...] = ()


def record_codecs(
    types: Iterable[tuple[int, MessageLayout, MessageLayout, MessageLayout | None]],
) -> dict[int, RecordCodec]:
    """Return codecs by record type, from tuples (type, layout of the key, layout of the value, its dialect)."""
    compile_ = compiler()

    def readers(layout: MessageLayout | None) -> tuple[Reader, ...]:
        return () if layout is None else tuple(compile_.reader(layout.name, each) for each in range(layout.highest + 1))

    return {
        number: RecordCodec(
            compile_.reader(key.name, 0),
            compile_.writer(key.name, 0),
            readers(value),
            tuple(compile_.writer(value.name, version) for version in range(value.highest + 1)),
            readers(dialect),
        )
        for number, key, value, dialect in types
    }


def open_envelope(
    codecs: Mapping[int, RecordCodec], key: bytes | None, value: bytes | None, build: Callable[[int, Any, Any, int | None], R]
) -> R | Undecodable:
    """Decode key and value, and call `build` with (type, key, value, value version); total.

    A null value is a tombstone: value and version are None. Bytes after a message are ignored, as by every Kafka reader. A value
    is of the dialect of its type if only that layout ends where the value ends.
    """
    if key is None:
        return Malformed(None, "key", 0, "null key")
    if len(key) < 2:
        return Malformed(None, "key", 0, f"needs 2 bytes for the record type, {len(key)} are left")
    (record_type,) = _INT16.unpack_from(key)
    codec = codecs.get(record_type)
    if codec is None:
        return UnknownType(record_type)
    sink: list[Any] = []
    try:
        codec.read_key(key, 2, sink)
    except Unreadable as failure:
        return Malformed(record_type, "key", failure.position, failure.problem)
    if value is None:
        return build(record_type, sink[0], None, None)
    if len(value) < 2:
        return Malformed(record_type, "value", 0, f"needs 2 bytes for the version, {len(value)} are left")
    (version,) = _INT16.unpack_from(value)
    if not 0 <= version < len(codec.read_value):
        return UnknownVersion(record_type, version, 0, len(codec.read_value) - 1)
    problem: Malformed | None = None
    end = -1
    try:
        end = codec.read_value[version](value, 2, sink)
    except Unreadable as failure:
        problem = Malformed(record_type, "value", failure.position, failure.problem)
    if end != len(value) and version < len(codec.read_dialect):
        whole = _whole(codec.read_dialect[version], value)
        if whole:
            return build(record_type, sink[0], whole[0], version)
    return problem or build(record_type, sink[0], sink[1], version)


def _whole(read: Reader, value: bytes) -> list[Any]:
    """The message that takes all bytes of a value after its version; empty if `read` finds none."""
    sink: list[Any] = []
    try:
        end = read(value, 2, sink)
    except Unreadable:
        return []
    return sink if end == len(value) else []


def seal_envelope(
    codecs: Mapping[int, RecordCodec], record_type: int, key: Any, value: Any, value_version: int | None
) -> tuple[bytes, bytes | None]:
    """Encode key and value of a record. Raises ValueError for a type or version without layout and for values out of range."""
    codec = codecs.get(record_type)
    if codec is None:
        raise ValueError(f"no layout for record type {record_type}")
    key_bytes = bytearray(_INT16.pack(record_type))
    codec.write_key(key_bytes, key)
    if value is None:
        return bytes(key_bytes), None
    if value_version is None or not 0 <= value_version < len(codec.write_value):
        raise ValueError(f"record type {record_type}: no layout for value version {value_version}")
    value_bytes = bytearray(_INT16.pack(value_version))
    codec.write_value[value_version](value_bytes, value)
    return bytes(key_bytes), bytes(value_bytes)
