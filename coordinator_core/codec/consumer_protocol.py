"""The embedded protocol of classic consumers: subscription and assignment bytes of group members (`ConsumerProtocol`).

Only groups of protocol type "consumer" use it. Versions may only append fields, so a version above the highest known one
is read as the highest known one; a negative version is malformed. All decoders here are total.
"""

from dataclasses import dataclass
from struct import Struct
from typing import Any

from coordinator_core.codec.compiler import compiler
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    CooperativeStickyUserData,
    StickyUserData,
)
from coordinator_core.codec.outcomes import Malformed
from coordinator_core.codec.wire import Reader, Unreadable, Writer

_INT16 = Struct(">h")

#: Highest version of subscription and assignment (KIP-881, 3.4).
HIGHEST_VERSION = 3
#: `DEFAULT_GENERATION`: a member that does not report the generation of its owned partitions.
UNKNOWN_GENERATION = -1


@dataclass(frozen=True, slots=True)
class NoAssignment:
    """Empty assignment bytes, which are normal for a member without partitions and valid in no version."""


def _readers(name: str, highest: int) -> tuple[Reader, ...]:
    return tuple(compiler().reader(name, version) for version in range(highest + 1))


def _writers(name: str, highest: int) -> tuple[Writer, ...]:
    return tuple(compiler().writer(name, version) for version in range(highest + 1))


_READ_SUBSCRIPTION = _readers("ConsumerProtocolSubscription", HIGHEST_VERSION)
_WRITE_SUBSCRIPTION = _writers("ConsumerProtocolSubscription", HIGHEST_VERSION)
_READ_ASSIGNMENT = _readers("ConsumerProtocolAssignment", HIGHEST_VERSION)
_WRITE_ASSIGNMENT = _writers("ConsumerProtocolAssignment", HIGHEST_VERSION)
_READ_STICKY = _readers("StickyUserData", 1)
_WRITE_STICKY = _writers("StickyUserData", 1)
_READ_COOPERATIVE = _readers("CooperativeStickyUserData", 0)[0]
_WRITE_COOPERATIVE = _writers("CooperativeStickyUserData", 0)[0]


def protocol_version(data: bytes) -> int | None:
    """Return the version of subscription or assignment bytes, None if they are too short for one."""
    return None if len(data) < 2 else int.from_bytes(data[:2], "big", signed=True)


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription | Malformed:
    """Decode subscription bytes as clients do. An empty `rack_id` is returned as empty (clients treat it as null)."""
    subscription: ConsumerProtocolSubscription | Malformed = _decode("subscription", _READ_SUBSCRIPTION, data)
    return subscription


def encode_subscription(subscription: ConsumerProtocolSubscription, version: int = HIGHEST_VERSION) -> bytes:
    """Encode a subscription in version 0–3; order is kept (Java clients sort topics and owned partitions before).

    Raises ValueError for other versions and for values that cannot be written.
    """
    return _encode(_WRITE_SUBSCRIPTION, version, subscription)


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment | NoAssignment | Malformed:
    """Decode assignment bytes as clients do."""
    if not data:
        return NoAssignment()
    assignment: ConsumerProtocolAssignment | Malformed = _decode("assignment", _READ_ASSIGNMENT, data)
    return assignment


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int = HIGHEST_VERSION) -> bytes:
    """Encode an assignment in version 0–3. Raises ValueError for other versions and for values that cannot be written."""
    return _encode(_WRITE_ASSIGNMENT, version, assignment)


def subscribed_topics(data: bytes) -> tuple[str, ...] | Malformed:
    """Decode the topics as the coordinator does (`computeSubscribedTopics`).

    Any version is accepted, and the fields of version 0 (topics and user data) must be present. One malformed member makes the
    group's topics unknown.
    """
    subscription = _read("subscription", _READ_SUBSCRIPTION[0], data, 2)
    return subscription if isinstance(subscription, Malformed) else subscription.topics


def refused_by_loaders(data: bytes) -> str | None:
    """Return the problem in subscription bytes that makes a loader since 2.4 fail the whole partition; None if it accepts them.

    Bytes that end before a version or a length leave the topics unknown (SchemaException, which is caught). A length above the
    bytes left, or an invalid null, is a RuntimeException of `ConsumerProtocolSubscription.read`, which is not caught.
    """
    position = 2
    count, position = _length(data, position, 4)
    if count is None:
        return None
    if not 0 <= count <= len(data) - position:
        return f"{count} topics, but only {len(data) - position} bytes are left"
    for _ in range(count):
        length, position = _length(data, position, 2)
        if length is None:
            return None
        if not 0 <= length <= len(data) - position:
            return f"topic of {length} bytes, but only {len(data) - position} are left"
        position += length
    length, position = _length(data, position, 4)
    if length is not None and length > len(data) - position:
        return f"user data of {length} bytes, but only {len(data) - position} are left"
    return None


def _length(data: bytes, position: int, size: int) -> tuple[int | None, int]:
    """Read a signed length: (length, position after it); the length is None if the bytes end before."""
    end = position + size
    return (None, position) if end > len(data) else (int.from_bytes(data[position:end], "big", signed=True), end)


def decode_sticky_user_data(data: bytes) -> StickyUserData | Malformed:
    """Decode user data of the sticky assignor: it has no version, so it is read as V1 and, if that fails, as V0."""
    user_data: StickyUserData | Malformed = _read("user data", _READ_STICKY[1], data, 0)
    if isinstance(user_data, Malformed):
        user_data = _read("user data", _READ_STICKY[0], data, 0)
    return user_data


def encode_sticky_user_data(user_data: StickyUserData, version: int = 1) -> bytes:
    """Encode user data of the sticky assignor, V0 (before 2.3) or V1. Raises ValueError for other versions and invalid values."""
    if version not in (0, 1):
        raise ValueError(f"version {version} is not in 0–1")
    out = bytearray()
    _WRITE_STICKY[version](out, user_data)
    return bytes(out)


def decode_cooperative_user_data(data: bytes) -> CooperativeStickyUserData | Malformed:
    """Decode user data of the cooperative sticky assignor (KAFKA-12984)."""
    user_data: CooperativeStickyUserData | Malformed = _read("user data", _READ_COOPERATIVE, data, 0)
    return user_data


def encode_cooperative_user_data(user_data: CooperativeStickyUserData) -> bytes:
    """Encode user data of the cooperative sticky assignor. Raises ValueError for a generation out of range."""
    out = bytearray()
    _WRITE_COOPERATIVE(out, user_data)
    return bytes(out)


def cooperative_generation(generation_id: int, user_data: bytes | None) -> int:
    """Return the generation of the owned partitions: a field since version 2, part of the user data before; -1 if unknown."""
    if generation_id != UNKNOWN_GENERATION or not user_data:
        return generation_id
    decoded = decode_cooperative_user_data(user_data)
    return UNKNOWN_GENERATION if isinstance(decoded, Malformed) else decoded.generation


def _decode(part: str, readers: tuple[Reader, ...], data: bytes) -> Any:
    version = protocol_version(data)
    if version is None:
        return Malformed(None, part, 0, f"needs 2 bytes for the version, {len(data)} are left")
    if version < 0:
        return Malformed(None, part, 0, f"version {version}")
    return _read(part, readers[min(version, HIGHEST_VERSION)], data, 2)


def _read(part: str, read: Reader, data: bytes, position: int) -> Any:
    sink: list[Any] = []
    try:
        read(data, position, sink)
    except Unreadable as failure:
        return Malformed(None, part, failure.position, failure.problem)
    return sink[0]


def _encode(writers: tuple[Writer, ...], version: int, value: Any) -> bytes:
    if not 0 <= version <= HIGHEST_VERSION:
        raise ValueError(f"version {version} is not in 0–{HIGHEST_VERSION}")
    out = bytearray(_INT16.pack(version))
    writers[version](out, value)
    return bytes(out)
