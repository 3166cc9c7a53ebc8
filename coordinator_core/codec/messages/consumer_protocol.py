"""Subscription and assignment of classic consumers, and the user data of their assignors (`ConsumerProtocol`)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProtocolTopicPartitions:
    topic: str
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerProtocolSubscription:
    """Versions 0–3."""

    topics: tuple[str, ...] = ()
    user_data: bytes | None = None
    owned_partitions: tuple[ProtocolTopicPartitions, ...] = ()
    generation_id: int = -1
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class ConsumerProtocolAssignment:
    """Versions 0–3 (the layout never changed)."""

    assigned_partitions: tuple[ProtocolTopicPartitions, ...] = ()
    user_data: bytes | None = None


@dataclass(frozen=True, slots=True)
class StickyUserData:
    """User data of the sticky assignor V0/V1; V0 has no generation (-1)."""

    previous_assignment: tuple[ProtocolTopicPartitions, ...] = ()
    generation: int = -1


@dataclass(frozen=True, slots=True)
class CooperativeStickyUserData:
    generation: int
