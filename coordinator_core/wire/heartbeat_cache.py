"""A cache of decoded heartbeats: a member repeats the same body until the next rebalance.

Each entry was read by the library once. The number of entries and the size of each entry are bounded.
"""

from functools import lru_cache

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import RequestHeader
from coordinator_core.wire import membership_codec
from coordinator_core.wire.api_codec import BadField, Parts
from coordinator_core.wire.errors import MalformedMessage
from coordinator_core.wire.library import message_codec
from coordinator_core.wire.parts import Peer

_CODEC = membership_codec.CODECS[apis.HEARTBEAT]
_LONGEST_HEARTBEAT = 256
_NO_PEER = Peer()


def cached_heartbeat(header: RequestHeader, frame: bytes, position: int) -> Parts | None:
    """Return a decoded heartbeat; None for other requests, and for heartbeats that are too long to cache or malformed."""
    if header.api_key != apis.HEARTBEAT.number or len(frame) - position > _LONGEST_HEARTBEAT:
        return None
    try:
        return _heartbeat(header.version, frame[position:])
    except (MalformedMessage, BadField):
        return None


@lru_cache(maxsize=1 << 14)
def _heartbeat(version: int, body: bytes) -> Parts:
    header = RequestHeader(apis.HEARTBEAT.number, version, 0, None)
    return _CODEC.read_request(message_codec(_CODEC.request, version).decode(body, 0, header), header, _NO_PEER)
