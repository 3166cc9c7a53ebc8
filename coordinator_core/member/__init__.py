"""The member's part of the classic protocol (`ConsumerCoordinator`): time and responses in, requests and events out. Pure."""

from coordinator_core.member.effects import (
    Effects,
    Event,
    MemberFailed,
    OffsetsCommitted,
    OffsetsFetched,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
)
from coordinator_core.member.member import GroupMember, MemberState
from coordinator_core.member.settings import MemberSettings

__all__ = [
    "Effects",
    "Event",
    "GroupMember",
    "MemberFailed",
    "MemberSettings",
    "MemberState",
    "OffsetsCommitted",
    "OffsetsFetched",
    "PartitionsAssigned",
    "PartitionsLost",
    "PartitionsRevoked",
]
