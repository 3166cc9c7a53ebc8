"""Responses of ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe as layouts, and a reader of layouts.

A layout is a row of (name, kind): a primitive, `[kind]` for an array, `("nullable", layout)`, or a nested layout.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Layout = tuple[tuple[str, Any], ...]

_TOPIC_PARTITIONS: Layout = (("topic_id", "uuid"), ("topic", "string"), ("partitions", ["int32"]))
_ASSIGNMENT: Layout = (("topics", [_TOPIC_PARTITIONS]),)
_HEAD: Layout = (
    ("error_code", "int16"),
    ("error_message", "string"),
    ("group_id", "string"),
    ("state", "string"),
    ("epoch", "int32"),
    ("assignment_epoch", "int32"),
)
_CONSUMER_MEMBER: Layout = (
    ("member_id", "string"),
    ("instance_id", "string"),
    ("rack", "string"),
    ("epoch", "int32"),
    ("client_id", "string"),
    ("client_host", "string"),
    ("subscribed", ["string"]),
    ("regex", "string"),
    ("assigned", _ASSIGNMENT),
    ("target", _ASSIGNMENT),
)
_SHARE_MEMBER: Layout = (
    ("member_id", "string"),
    ("rack", "string"),
    ("epoch", "int32"),
    ("client_id", "string"),
    ("client_host", "string"),
    ("subscribed", ["string"]),
    ("assigned", _ASSIGNMENT),
)
_KEY_VALUE: Layout = (("key", "string"), ("value", "string"))
_TOPIC_INFO: Layout = (("name", "string"), ("partitions", "int32"), ("replication_factor", "int16"), ("configs", [_KEY_VALUE]))
_SUBTOPOLOGY: Layout = (
    ("subtopology", "string"),
    ("source_topics", ["string"]),
    ("sink_topics", ["string"]),
    ("changelog_topics", [_TOPIC_INFO]),
    ("repartition_topics", [_TOPIC_INFO]),
)
_TOPOLOGY: Layout = (("epoch", "int32"), ("subtopologies", [_SUBTOPOLOGY]))
_TASK_OFFSET: Layout = (("subtopology", "string"), ("partition", "int32"), ("offset", "int64"))
_TASKS: Layout = (("subtopology", "string"), ("partitions", ["int32"]))
_TASK_ASSIGNMENT: Layout = (("active", [_TASKS]), ("standby", [_TASKS]), ("warmup", [_TASKS]))
_STREAMS_MEMBER: Layout = (
    ("member_id", "string"),
    ("epoch", "int32"),
    ("instance_id", "string"),
    ("rack", "string"),
    ("client_id", "string"),
    ("client_host", "string"),
    ("topology_epoch", "int32"),
    ("process_id", "string"),
    ("endpoint", ("nullable", (("host", "string"), ("port", "uint16")))),
    ("client_tags", [_KEY_VALUE]),
    ("task_offsets", [_TASK_OFFSET]),
    ("task_end_offsets", [_TASK_OFFSET]),
    ("assigned", _TASK_ASSIGNMENT),
    ("target", _TASK_ASSIGNMENT),
    ("is_classic", "int8"),
)
_OPERATIONS = ("authorized_operations", "int32")
#: Kind → API key, version, layout of a described group.
DESCRIBE: Mapping[str, tuple[int, int, Layout]] = {
    "consumer": (69, 0, (*_HEAD, ("assignor", "string"), ("members", [_CONSUMER_MEMBER]), _OPERATIONS)),
    "share": (77, 1, (*_HEAD, ("assignor", "string"), ("members", [_SHARE_MEMBER]), _OPERATIONS)),
    "streams": (89, 0, (*_HEAD, ("topology", ("nullable", _TOPOLOGY)), ("members", [_STREAMS_MEMBER]), _OPERATIONS)),
}


class Reader:
    """Reads the compact ("flexible") encoding by a layout."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def int32(self) -> int:
        return int(self.value("int32"))

    def structs(self, layout: Layout) -> list[dict[str, Any]]:
        return [self.value(layout) for _ in range(self._varint() - 1)]

    def value(self, kind: Any) -> Any:
        match kind:
            case "string":
                length = self._varint() - 1
                return None if length < 0 else self._take(length).decode()
            case "uuid":
                return self._take(16)
            case "int8" | "int16" | "int32" | "int64":
                return int.from_bytes(self._take(int(kind[3:]) // 8), "big", signed=True)
            case "uint16":
                return int.from_bytes(self._take(2), "big")
            case [item] if isinstance(kind, list):
                return [self.value(item) for _ in range(self._varint() - 1)]
            case ("nullable", layout):
                return None if self.value("int8") < 0 else self.value(layout)
        found = {name: self.value(field) for name, field in kind}
        for _ in range(self._varint()):
            self._varint()
            self._take(self._varint())
        return found

    def _take(self, length: int) -> bytes:
        start, self._position = self._position, self._position + length
        return self._data[start : self._position]

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._take(1)[0]
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found


def array(texts: Sequence[str]) -> bytes:
    """A compact array of compact strings."""
    return _length(len(texts)) + b"".join(_length(len(data)) + data for data in (text.encode() for text in texts))


def _length(length: int) -> bytes:
    """A compact length: a varint of the length plus one."""
    number, out = length + 1, bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
