"""Events of groups for logs and metrics: rebalances with their reasons, members that joined or were removed.

Events are values in a `CoordinatorResult`. No response and no record depends on them, and they are not durable.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemberIdGiven:
    """A member without an id got this one, with which it must join again (KIP-394)."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class MemberJoined:
    """A new member is in the group; its session has begun."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str


@dataclass(frozen=True, slots=True)
class MemberRemoved:
    """A member, or a pending member id, was removed from the group."""

    group_id: str
    member_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class RebalanceBegan:
    """Members must join again; `state` and `generation` are those before the rebalance."""

    group_id: str
    state: str
    generation: int
    reason: str


@dataclass(frozen=True, slots=True)
class GenerationBegan:
    """The join phase has ended, and the leader must assign partitions. Without members the group is Empty."""

    group_id: str
    generation: int
    members: int
    protocol: str | None
    leader: str | None


@dataclass(frozen=True, slots=True)
class GroupStabilized:
    """The log has the assignment of the generation."""

    group_id: str
    generation: int
    members: int


@dataclass(frozen=True, slots=True)
class GroupRemoved:
    """The log has the tombstones of the group and of `offsets` of its offsets."""

    group_id: str
    reason: str
    offsets: int


@dataclass(frozen=True, slots=True)
class OffsetsExpired:
    """The log has the tombstones of expired offsets; the group remains."""

    group_id: str
    offsets: int


@dataclass(frozen=True, slots=True)
class WriteRefused:
    """A request's records cannot be encoded: a string is too long, or a number out of range."""

    records: int


GroupEvent = (
    MemberIdGiven
    | MemberJoined
    | MemberRemoved
    | RebalanceBegan
    | GenerationBegan
    | GroupStabilized
    | GroupRemoved
    | OffsetsExpired
    | WriteRefused
)
