"""What a crowd does, and when: the same for the same seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import NamedTuple

from coordinator_core.assignors import Assignor, CooperativeStickyAssignor, RangeAssignor


class Action(Enum):
    """JOIN starts a member that is not there; CRASH closes its socket without a LeaveGroup."""

    JOIN = "join"
    COMMIT = "commit"
    LEAVE = "leave"
    CRASH = "crash"


class Step(NamedTuple):
    """`at_ms` after the beginning."""

    at_ms: int
    action: Action
    member: int


@dataclass(frozen=True, slots=True)
class CrowdSettings:
    """`members` are dealt out to `groups` one after the other. Times in ms.

    They join within `ramp_ms`, then do something every `pause_ms` until `duration_ms`: mostly a commit of one member, else it
    leaves or crashes, by `leaves` and `crashes` in a thousand, and joins again after `absence_ms`. `connections` None: one for
    each member. Otherwise members share that many, but never two of a group, since a broker answers the requests of a connection
    in order and a JoinGroup waits for the whole group. `partitions` of each of `topics` are given by hand; None asks the cluster.

    Raises ValueError where a group is larger than the connections.
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
            raise ValueError(f"groups {self.groups} is not in 1–{self.members}, the number of members")
        largest = -(-self.members // self.groups)
        if self.connections is not None and self.connections < largest:
            raise ValueError(f"connections {self.connections} is below {largest}, the size of the largest group")

    def group_of(self, member: int) -> str:
        """The group of a member, by number."""
        return f"{self.prefix}-{member % self.groups}"

    def connection_of(self, member: int) -> int:
        """Which of the connections a member uses; members of a group use different ones."""
        return member if self.connections is None else member // self.groups % self.connections


def script(settings: CrowdSettings) -> Iterator[Step]:
    """The steps in the order of time."""
    random = Random(settings.seed)
    absent: list[Step] = []
    for member in range(settings.members):
        yield Step(member * settings.ramp_ms // settings.members, Action.JOIN, member)
    for at_ms in range(settings.ramp_ms, settings.duration_ms, settings.pause_ms):
        while absent and absent[0].at_ms <= at_ms:
            yield absent.pop(0)
        away = {step.member for step in absent}
        member = random.randrange(settings.members)
        chance = random.randrange(1000)
        if member in away:
            continue
        if chance >= settings.leaves + settings.crashes:
            yield Step(at_ms, Action.COMMIT, member)
            continue
        yield Step(at_ms, Action.LEAVE if chance < settings.leaves else Action.CRASH, member)
        absent.append(Step(at_ms + settings.absence_ms, Action.JOIN, member))
    yield from absent
