"""ListOffsets requests for many partitions, encoded topic by topic instead of partition by partition."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from kafka.protocol.consumer import ListOffsetsRequest

from coordinator_core.codec.wire import write_uvarint
from coordinator_core.sources.kafka_topic import Leader

_CONSUMER = -1
#: Last version without tiered storage's positions, which a reader does not need.
_LAST_VERSION = 9
_WITH_LEADER_EPOCH, _FLEXIBLE = 4, 6
_PARTITION = [("partition_index", ">i4"), ("current_leader_epoch", ">i4"), ("timestamp", ">i8")]
_PARTITION_LAYOUT = np.dtype(_PARTITION)
_FLEXIBLE_PARTITION_LAYOUT = np.dtype([*_PARTITION, ("tags", "u1")])
_NO_TAGS = b"\0"


class ListOffsets(ListOffsetsRequest, init=False):  # type: ignore[misc, call-arg]  # the library has no types
    """The library's message with a faster `encode`. Its own encoder, which has an object per partition, is the specification.

    `which` is the position of all partitions, or of each (topic, partition).
    """

    def __init__(
        self, leaders: Mapping[str, Mapping[int, Leader]], which: int | Mapping[tuple[str, int], int], isolation_level: int
    ) -> None:
        super().__init__(replica_id=_CONSUMER, isolation_level=isolation_level, max_version=_LAST_VERSION)
        self._leaders = leaders
        self._which = which

    @cached_property
    def topics(self) -> list[Any]:
        """The library's objects, for versions before leader epochs and for readers of the message."""
        kind = ListOffsetsRequest.ListOffsetsTopic
        return [
            kind(
                name=name,
                partitions=[
                    kind.ListOffsetsPartition(
                        partition_index=partition, current_leader_epoch=leader.epoch, timestamp=self._position(name, partition)
                    )
                    for partition, leader in leaders.items()
                ],
            )
            for name, leaders in self._leaders.items()
        ]

    def encode(self, version: int | None = None, header: bool = False, framed: bool = False) -> bytes:
        """Encode as the library does."""
        if version is not None:
            self.API_VERSION = version
        if not _WITH_LEADER_EPOCH <= self.API_VERSION <= _LAST_VERSION:
            data: bytes = super().encode(header=header, framed=framed)
            return data
        flexible = self.API_VERSION >= _FLEXIBLE
        parts = [
            self.encode_header(flexible=flexible) if header else b"",
            _CONSUMER.to_bytes(4, "big", signed=True),
            self.isolation_level.to_bytes(1, "big"),
            _length(len(self._leaders), 4, flexible),
        ]
        for name, leaders in self._leaders.items():
            encoded = name.encode()
            parts += [
                _length(len(encoded), 2, flexible),
                encoded,
                _length(len(leaders), 4, flexible),
                self._partitions(name, leaders, flexible),
            ]
            if flexible:
                parts.append(_NO_TAGS)
        if flexible:
            parts.append(_NO_TAGS)
        body = b"".join(parts)
        return len(body).to_bytes(4, "big") + body if framed else body

    def _partitions(self, name: str, leaders: Mapping[int, Leader], flexible: bool) -> bytes:
        rows = np.zeros(len(leaders), _FLEXIBLE_PARTITION_LAYOUT if flexible else _PARTITION_LAYOUT)
        rows["partition_index"] = list(leaders)
        rows["current_leader_epoch"] = [leader.epoch for leader in leaders.values()]
        rows["timestamp"] = self._which if isinstance(self._which, int) else [self._which[name, each] for each in leaders]
        return rows.tobytes()

    def _position(self, name: str, partition: int) -> int:
        return self._which if isinstance(self._which, int) else self._which[name, partition]


def _length(length: int, size: int, flexible: bool) -> bytes:
    """The length of a string or an array: a varint that is greater by one in flexible versions."""
    if not flexible:
        return length.to_bytes(size, "big")
    encoded = bytearray()
    write_uvarint(encoded, length + 1)
    return bytes(encoded)
