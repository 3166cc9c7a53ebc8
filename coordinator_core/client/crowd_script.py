"""Script of a crowd: actions and their times, determined by a seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import NamedTuple

from coordinator_core.assignors import Assignor, CooperativeStickyAssignor, RangeAssignor


class Action(Enum):
    """Action of a member. JOIN starts an absent member; CRASH closes its socket without a LeaveGroup."""

    JOIN = "join"
    COMMIT = "commit"
    LEAVE = "leave"
    CRASH = "crash"


class MemberStep(NamedTuple):
    """An action of a member, `at_ms` after the start."""

    at_ms: int
    action: Action
    member: int


@dataclass(frozen=True, slots=True)
class CrowdSettings:
    """Settings of a crowd. `members` are distributed over `groups` round-robin. Times are in ms.

    All members join within `ramp_ms`. Then, every `pause_ms` until `duration_ms`, one member acts: it leaves (`leaves` of 1000
    actions) or crashes (`crashes` of 1000), and joins again after `absence_ms`; otherwise it commits. `connections` None: one for
    each member. Otherwise members share this number, but never two of a group, since a broker answers the requests of a
    connection in order and a JoinGroup waits for the whole group. `partitions` is the number of partitions of each topic; None
    requests it from the cluster.

    Raises ValueError if a group has more members than there are connections, or there are more groups than members.
    """

    groups: int = 10
    members: int = 100
    topics: tuple[str, ...] = ("orders",)
    partitions: int | None = 12
    connections: int | None = None
    seed: int = 1
    ramp_ms: int = 1_000
    duration_ms: int = 10_000
    pause_ms: int = 10
    absence_ms: int = 500
    leaves: int = 20
    crashes: int = 10
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    heartbeat_interval_ms: int = 3_000
    assignors: tuple[Assignor, ...] = (RangeAssignor(), CooperativeStickyAssignor())
    prefix: str = "crowd"

    def __post_init__(self) -> None:
        if not 1 <= self.groups <= self.members:
            raise ValueError(f"groups is {self.groups}: use 1–{self.members}, the number of members")
        largest = -(-self.members // self.groups)
        if self.connections is not None and self.connections < largest:
            raise ValueError(f"connections is {self.connections}: use {largest}, the size of the largest group, or more")

    def group_of(self, member: int) -> str:
        """Returns the group of a member, by its number."""
        return f"{self.prefix}-{member % self.groups}"

    def connection_of(self, member: int) -> int:
        """Returns the number of a member's connection; members of a group use different ones."""
        return member if self.connections is None else member // self.groups % self.connections


def script(settings: CrowdSettings) -> Iterator[MemberStep]:
    """Yields the steps in the order of time."""
    random = Random(settings.seed)
    absent: list[MemberStep] = []
    for member in range(settings.members):
        yield MemberStep(member * settings.ramp_ms // settings.members, Action.JOIN, member)
    for at_ms in range(settings.ramp_ms, settings.duration_ms, settings.pause_ms):
        while absent and absent[0].at_ms <= at_ms:
            yield absent.pop(0)
        absent_members = {step.member for step in absent}
        member = random.randrange(settings.members)
        chance = random.randrange(1000)
        if member in absent_members:
            continue
        if chance >= settings.leaves + settings.crashes:
            yield MemberStep(at_ms, Action.COMMIT, member)
            continue
        yield MemberStep(at_ms, Action.LEAVE if chance < settings.leaves else Action.CRASH, member)
        absent.append(MemberStep(at_ms + settings.absence_ms, Action.JOIN, member))
    yield from absent
