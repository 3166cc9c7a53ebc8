"""What a coordinator has to tell to whoever watches over it: which group rebalances and why, who came, who went.

Facts are values in an `CoordinatorResult`. No answer and no record depends on them; what is durable is in the log, not here.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemberIdGiven:
    """A member without id was told to come back with this one (KIP-394)."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class MemberJoined:
    """A member that was not in the group is now, until its session ends."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str


@dataclass(frozen=True, slots=True)
class MemberRemoved:
    """A member, or an id that was given out and never used, is not in the group any more."""

    group_id: str
    member_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class RebalanceBegan:
    """Members are to join again; the group was in this state and generation before."""

    group_id: str
    state: str
    generation: int
    reason: str


@dataclass(frozen=True, slots=True)
class GenerationBegan:
    """Everybody who counts has joined; the leader is to assign. Without members the group is Empty."""

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
    """The log has the tombstones of the group and of so many of its offsets."""

    group_id: str
    reason: str
    offsets: int


@dataclass(frozen=True, slots=True)
class OffsetsExpired:
    """The log has the tombstones of so many offsets of a group that goes on."""

    group_id: str
    offsets: int


@dataclass(frozen=True, slots=True)
class WriteRefused:
    """No log can hold what a request wanted to write: a string that is too long, a number out of range."""

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
