"""Number of groups by type and state, for metrics and the status page."""

from collections import Counter
from dataclasses import dataclass, field

from coordinator_core.group_coordinator.context import CoordinatorContext
from coordinator_core.group_coordinator.group.states import EMPTY
from coordinator_core.state.classic_group import LoadedClassicGroup


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """`groups` by type and state, in the words of ListGroups; `members` of classic groups."""

    groups: Counter[tuple[str, str]] = field(default_factory=Counter)
    members: int = 0


def count_groups(context: CoordinatorContext) -> GroupCounts:
    """Counts the groups of one log partition."""
    live, logged = context.groups, context.state.registry.groups
    groups = Counter(("classic", group.state.value) for group in live.values())
    for group_id, known in logged.items():
        if group_id in live:
            continue
        if isinstance(known, LoadedClassicGroup):
            groups["classic", EMPTY.value] += 1
        else:
            view = known.view({})
            groups[view.group_type, view.state] += 1
    alone = context.state.offsets.groups_with_commits() - live.keys() - logged.keys()
    if alone:
        groups["classic", EMPTY.value] += sum(context.state.has_group(group_id) for group_id in alone)
    return GroupCounts(groups, sum(len(group) for group in live.values()))
