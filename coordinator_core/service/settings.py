"""Settings of the service beside those of the coordinator: listener, log, shutdown. Kafka's names where it has them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

_INT32_MAX = 2**31 - 1
#: Topic names that Kafka allows (`Topic.validate`).
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LOWEST = {
    "node_id": 0,
    "socket_request_max_bytes": 1,
    "queued_max_request_bytes": 1,
    "max_connections": 1,
    "max_connections_per_ip": 1,
    "connections_max_idle_ms": 1,
    "write_buffer_bytes": 0,
    "fsync_interval_ms": 1,
    "log_cleaner_interval_ms": 0,
    "drain_ms": 0,
}


class Fsync(StrEnum):
    """When what was appended is forced to the disk. The process may be killed at any time with all three; they differ in what a
    machine that loses power loses: nothing that was answered, an interval, what the system had not written."""

    ALWAYS = "always"
    INTERVAL = "interval"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """`socket.request.max.bytes`, `queued.max.request.bytes`, `max.connections`, `max.connections.per.ip`,
    `connections.max.idle.ms`, `broker.id`, and what is ours. Times in ms.

    `topics` are the topics that clients are told of, with their numbers of partitions; there is no data in them.
    Raises ValueError for a value out of its range.
    """

    node_id: int = 1
    cluster_id: str = "grouplake"
    #: Brokers allow 100 MiB. Taking a request apart keeps all other clients waiting, here up to a second for each MiB.
    socket_request_max_bytes: int = 2 * 1024 * 1024
    #: Of all connections together: what has arrived of requests that are not complete.
    queued_max_request_bytes: int = 256 * 1024 * 1024
    max_connections: int = _INT32_MAX
    max_connections_per_ip: int = _INT32_MAX
    connections_max_idle_ms: int = 600_000
    #: Answers of one connection that its client has not taken; above, its next request waits.
    write_buffer_bytes: int = 64 * 1024
    fsync: Fsync = Fsync.INTERVAL
    fsync_interval_ms: int = 1_000
    #: 0: the log is not cleaned.
    log_cleaner_interval_ms: int = 15_000
    #: How long requests that are under way may take when the service ends.
    drain_ms: int = 10_000
    topics: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for key, lowest in _LOWEST.items():
            value = getattr(self, key)
            if not lowest <= value <= _INT32_MAX:
                raise ValueError(f"{key} is {value}, which is not in {lowest}–{_INT32_MAX}")
        for name, partitions in self.topics.items():
            if not _TOPIC.fullmatch(name) or name in (".", ".."):
                raise ValueError(f"topics: {name!r} is no name of a topic: letters, digits, . _ - and 249 characters at most")
            if type(partitions) is not int or not 1 <= partitions <= 100_000:
                raise ValueError(f"topics: {name} has {partitions!r} partitions, and must have 1–100000")
