"""The five states of a classic group, and their valid transitions (`ClassicGroupState`, `GroupState.validPreviousStates`).

Empty: the group has no members; it exists for its offsets, or for its generation.
  In it: the first JoinGroup begins a rebalance; SyncGroup, Heartbeat and LeaveGroup get UNKNOWN_MEMBER_ID; commits without a
  generation are accepted; offsets expire after the retention time.
  Next: PreparingRebalance with the first member, Dead by DeleteGroups or when its last offset expires.

PreparingRebalance: the members join, within the largest of their rebalance timeouts.
  In it: JoinGroup is parked; SyncGroup and Heartbeat get REBALANCE_IN_PROGRESS; commits of the previous generation are accepted;
  LeaveGroup removes the member.
  Next: CompletingRebalance when all members have joined or the timeout has passed, Empty if none is left.

CompletingRebalance: a generation has begun, and its leader computes the assignment.
  In it: SyncGroup of followers is parked until the leader's arrives; commits get REBALANCE_IN_PROGRESS; a new or changed member
  begins another rebalance.
  Next: Stable when the log has the leader's assignment, PreparingRebalance when the members change.

Stable: every member has, or can get, its assignment.
  In it: SyncGroup returns the assignment; Heartbeat gets NONE; JoinGroup of a follower without changes gets the current
  generation; any other JoinGroup, a LeaveGroup and a session timeout begin a rebalance.
  Next: PreparingRebalance when the members change.

Dead: the tombstones of the group are being written, or another coordinator leads its partition.
  In it: requests get errors after which clients find the coordinator again or start over.
  Next: none; the group is Empty again if the log refuses the tombstones.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class ClassicGroupState(StrEnum):
    """A state, with its name in DescribeGroups and ListGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState

#: State → valid previous states.
VALID_PREVIOUS_STATES: Mapping[ClassicGroupState, frozenset[ClassicGroupState]] = MappingProxyType(
    {
        EMPTY: frozenset({PREPARING_REBALANCE}),
        PREPARING_REBALANCE: frozenset({EMPTY, COMPLETING_REBALANCE, STABLE}),
        COMPLETING_REBALANCE: frozenset({PREPARING_REBALANCE}),
        STABLE: frozenset({COMPLETING_REBALANCE}),
        DEAD: frozenset(ClassicGroupState),
    }
)


class IllegalGroupTransition(Exception):
    """A transition that the table does not have; the group is unchanged (`IllegalStateException`)."""

    def __init__(self, group_id: str, before: ClassicGroupState, after: ClassicGroupState) -> None:
        allowed = ", ".join(sorted(VALID_PREVIOUS_STATES[after]))
        super().__init__(f"group {group_id!r} is {before}; {after} may only follow {allowed}")


def check_transition(group_id: str, before: ClassicGroupState, after: ClassicGroupState) -> None:
    """Raises IllegalGroupTransition if the transition is not valid."""
    if before not in VALID_PREVIOUS_STATES[after]:
        raise IllegalGroupTransition(group_id, before, after)
