"""Decoder of the records of classic groups that reuses the members of the group's previous record.

Members make up most of a record, and most records repeat those of the previous one: a rebalance without membership changes only
increments the generation. Members are decoded again only if their bytes differ.
"""

from dataclasses import dataclass
from functools import cache
from struct import Struct
from typing import Any

from coordinator_core.codec.compiler import compiler
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue
from coordinator_core.codec.outcomes import Undecodable
from coordinator_core.codec.records import Record, decode
from coordinator_core.codec.wire import Reader, Unreadable

_CLASSIC_GROUP = 2
_VERSION = Struct(">h")

#: State timestamp of values below version 2, which lack this field, the last one before the members.
_UNKNOWN_TIMESTAMP = -1
_FIELDS_IN_FRONT = 5


@dataclass(frozen=True, slots=True)
class _Read:
    """A decoded value: its version, as bytes and as a number, and its bytes from the members on."""

    key: GroupMetadataKey
    value: GroupMetadataValue
    prefix: bytes
    version: int
    tail: bytes


class ClassicGroupDecoder:
    """`decode` with a cache of the last value of each classic group."""

    def __init__(self) -> None:
        self._last: dict[bytes, _Read] = {}

    def decode(self, key: bytes | None, value: bytes | None) -> Record | Undecodable:
        """Return what `records.decode` returns for these bytes."""
        last = None if key is None else self._last.get(key)
        if last is not None and value is not None and value.startswith(last.prefix):
            head: list[Any] = []
            if value[_head(value, last.version, head) :] == last.tail:
                fields: tuple[Any, ...] = (*head, last.value.members, last.value.unknown_tags)
                group = GroupMetadataValue(*fields)
                return Record(_CLASSIC_GROUP, last.key, group, last.version)
        record = decode(key, value)
        if key is not None:
            self._remember(key, value, record)
        return record

    def _remember(self, key: bytes, value: bytes | None, record: Record | Undecodable) -> None:
        match record:
            case Record(key=GroupMetadataKey() as group, value=GroupMetadataValue() as read, value_version=int(version)):
                assert value is not None
                self._last[key] = _Read(group, read, _VERSION.pack(version), version, value[_head(value, version, []) :])
            case _:
                self._last.pop(key, None)


def _head(value: bytes, version: int, sink: list[Any]) -> int:
    """Read the fields before the members; return the position of the members, or the end of the value if it is malformed."""
    try:
        position = _head_reader(version)(value, _VERSION.size, sink)
    except Unreadable:
        return len(value)
    if len(sink) < _FIELDS_IN_FRONT:
        sink.append(_UNKNOWN_TIMESTAMP)
    return position


@cache
def _head_reader(version: int) -> Reader:
    return compiler().head_reader(GroupMetadataValue.__name__, version, "members")
