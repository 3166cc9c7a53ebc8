"""The five states of a classic group, and which may follow which (`GroupState.validPreviousStates`, `ClassicGroupState`).

Empty: nobody is in it; its offsets wait to expire. PreparingRebalance: members are to join, for as long as the largest of their
rebalance timeouts. CompletingRebalance: a generation has begun, its leader is to say who gets what. Stable: everybody knows.
Dead: being removed; whoever asks is to look for the coordinator again.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class ClassicGroupState(StrEnum):
    """A state, by the name that DescribeGroups and ListGroups give it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


#: State → states that it may follow.
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
    """A group was to go where it cannot go from its state; the group is as it was (`IllegalStateException`)."""

    def __init__(self, group_id: str, before: ClassicGroupState, after: ClassicGroupState) -> None:
        allowed = ", ".join(sorted(VALID_PREVIOUS_STATES[after]))
        super().__init__(f"group {group_id!r} is {before}; {after} may only follow {allowed}")


def check_transition(group_id: str, before: ClassicGroupState, after: ClassicGroupState) -> None:
    """Raises IllegalTransition if the table has no such step."""
    if before not in VALID_PREVIOUS_STATES[after]:
        raise IllegalTransition(group_id, before, after)
