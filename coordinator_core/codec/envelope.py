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
    """Readers and writers of one record type: one pair for its key, and one per version, from 0, for its value."""

    read_key: Reader
    write_key: Writer
    read_value: tuple[Reader, ...]
    write_value: tuple[Writer, ...]


def record_codecs(types: Iterable[tuple[int, MessageLayout, MessageLayout]]) -> dict[int, RecordCodec]:
    """Return codecs by record type, from triples (type, layout of the key, layout of the value)."""
    compile_ = compiler()
    return {
        number: RecordCodec(
            compile_.reader(key.name, 0),
            compile_.writer(key.name, 0),
            tuple(compile_.reader(value.name, version) for version in range(value.highest + 1)),
            tuple(compile_.writer(value.name, version) for version in range(value.highest + 1)),
        )
        for number, key, value in types
    }


def open_envelope(
    codecs: Mapping[int, RecordCodec], key: bytes | None, value: bytes | None, build: Callable[[int, Any, Any, int | None], R]
) -> R | Undecodable:
    """Decode key and value, and call `build` with (type, key, value, value version); total.

    A null value is a tombstone: value and version are None. Bytes after a message are ignored, as by every Kafka reader.
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
    try:
        codec.read_value[version](value, 2, sink)
    except Unreadable as failure:
        return Malformed(record_type, "value", failure.position, failure.problem)
    return build(record_type, sink[0], sink[1], version)


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
