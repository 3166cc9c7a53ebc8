"""Settings of the service: listener, log, shutdown; with Kafka's names where Kafka has the setting."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from coordinator_core.service.topic_settings import DeclaredTopic, declared_topic

_INT32_MAX = 2**31 - 1
_LOWEST = {
    "node_id": 0,
    "socket_request_max_bytes": 1,
    "decoded_request_max_bytes": 1,
    "queued_max_request_bytes": 1,
    "max_connections": 1,
    "max_connections_per_ip": 1,
    "connections_max_idle_ms": 1,
    "write_buffer_bytes": 0,
    "max_incremental_fetch_session_cache_slots": 0,
    "fsync_interval_ms": 1,
    "log_cleaner_interval_ms": 0,
    "drain_ms": 0,
    "node_session_timeout_ms": 1,
    "num_partitions": 1,
    "producer_id_expiration_ms": 1,
    "log_retention_check_interval_ms": 1,
}


class Fsync(StrEnum):
    """Policy of fsyncs after appends.

    A kill of the process loses no acknowledged record under any policy. A power failure loses nothing with `always`, the records
    of one interval with `interval`, and all records that the operating system had not yet written with `never`.
    """

    ALWAYS = "always"
    INTERVAL = "interval"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """`socket.request.max.bytes`, `queued.max.request.bytes`, `max.connections`, `max.connections.per.ip`,
    `connections.max.idle.ms`, `broker.id`, and settings that Kafka does not have. Times in ms.

    `topics` maps the names of topics to their numbers of partitions or, with data, to a table (`declared_topic`).
    Raises ValueError for a value out of its range.
    """

    node_id: int = 1
    cluster_id: str = "grouplake"
    socket_request_max_bytes: int = 100 * 1024 * 1024
    #: Bytes of a request that are decoded: all but the records of Produce. Decoding blocks all other clients, for up to a second
    #: per MiB.
    decoded_request_max_bytes: int = 2 * 1024 * 1024
    #: Bytes of requests that are not answered, of all connections together.
    queued_max_request_bytes: int = 256 * 1024 * 1024
    max_connections: int = _INT32_MAX
    max_connections_per_ip: int = _INT32_MAX
    connections_max_idle_ms: int = 600_000
    #: Unread response bytes of one connection above which its next request waits.
    write_buffer_bytes: int = 64 * 1024
    #: Fetch sessions.
    max_incremental_fetch_session_cache_slots: int = 1_000
    fsync: Fsync = Fsync.INTERVAL
    fsync_interval_ms: int = 1_000
    #: 0 disables compaction.
    log_cleaner_interval_ms: int = 15_000
    #: Time for requests in progress during a shutdown.
    drain_ms: int = 10_000
    #: `session.timeout.ms` of the node in the group that spreads a log on brokers over the nodes.
    node_session_timeout_ms: int = 6_000
    #: Partitions of a topic that a client creates without a number.
    num_partitions: int = 1
    producer_id_expiration_ms: int = 86_400_000
    log_retention_check_interval_ms: int = 300_000
    transaction_partition_verification_enable: bool = True
    topics: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for key, lowest in _LOWEST.items():
            value = getattr(self, key)
            if not lowest <= value <= _INT32_MAX:
                raise ValueError(f"{key} is {value}: use {lowest}–{_INT32_MAX}")
        _ = self.declared_topics

    @property
    def declared_topics(self) -> Mapping[str, DeclaredTopic]:
        """The topics of the configuration."""
        return {name: declared_topic(name, value) for name, value in self.topics.items()}
