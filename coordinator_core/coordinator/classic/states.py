"""The five states of a classic group, and their valid transitions (`GroupState.validPreviousStates`, `ClassicGroupState`).

- Empty: the group has no members; its offsets expire after the retention time.
- PreparingRebalance: members must join, within the largest of their rebalance timeouts.
- CompletingRebalance: a generation has begun; the leader must send the assignment in SyncGroup.
- Stable: the log has the assignment, and SyncGroup returns it.
- Dead: the group is being removed; clients must find the coordinator again.
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


#: State → valid previous states.
VALID_PREVIOUS_STATES: Mapping[ClassicGroupState, frozenset[ClassicGroupState]] = MappingProxyType(
    {
        ClassicGroupState.EMPTY: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
        ClassicGroupState.PREPARING_REBALANCE: frozenset(
            {ClassicGroupState.EMPTY, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE}
        ),
        ClassicGroupState.COMPLETING_REBALANCE: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
        ClassicGroupState.STABLE: frozenset({ClassicGroupState.COMPLETING_REBALANCE}),
        ClassicGroupState.DEAD: frozenset(ClassicGroupState),
    }
)


class IllegalTransition(Exception):
    """A transition that the table does not have; the group is unchanged (`IllegalStateException`)."""

    def __init__(self, group_id: str, before: ClassicGroupState, after: ClassicGroupState) -> None:
        allowed = ", ".join(sorted(VALID_PREVIOUS_STATES[after]))
        super().__init__(f"group {group_id!r} is {before}; {after} may only follow {allowed}")


def check_transition(group_id: str, before: ClassicGroupState, after: ClassicGroupState) -> None:
    """Raises IllegalTransition if the transition is not valid."""
    if before not in VALID_PREVIOUS_STATES[after]:
        raise IllegalTransition(group_id, before, after)
