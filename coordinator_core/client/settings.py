"""Network settings of a client, with the defaults of Kafka's clients."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from coordinator_core.protocol.api import AnyApi
from coordinator_core.wire.api_codec import ClientCodec
from coordinator_core.wire.client_codecs import CLIENT_CODECS


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Times are in ms. A frame longer than `max_frame_bytes` closes the connection. `codecs` are those of the APIs in use."""

    client_id: str = "grouplake"
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    max_frame_bytes: int = 100 * 1024 * 1024
    codecs: Mapping[AnyApi, ClientCodec] = field(default_factory=lambda: CLIENT_CODECS)
