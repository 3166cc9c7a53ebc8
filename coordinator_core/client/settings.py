"""Network settings of a client, with the defaults of Kafka's clients."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Times are in ms. A frame longer than `max_frame_bytes` closes the connection."""

    client_id: str = "grouplake"
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    max_frame_bytes: int = 100 * 1024 * 1024
