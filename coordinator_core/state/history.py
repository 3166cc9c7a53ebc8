"""Differences between two views of a group, as changes. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from coordinator_core.codec.uuids import uuid_text
from coordinator_core.state.views import GroupView, MemberView, TopicAssignment

#: Name, in the history, of an assignment that cannot be read. The record with it is a row of the quarantine.
UNREADABLE_ASSIGNMENT = "assignment_unreadable"
_REBALANCE = "rebalance"


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of a group's history. `member_id` is None for a change of the whole group; `detail` is a description."""

    change: str
    member_id: str | None
    detail: str


#: Changes of a group in the order of the history: name and compared value.
_GROUP_CHANGES: tuple[tuple[str, Callable[[GroupView], Any]], ...] = (
    ("type_changed", attrgetter("group_type")),
    (_REBALANCE, attrgetter("generation")),
    ("state_changed", attrgetter("state")),
    ("protocol_changed", attrgetter("protocol")),
    ("leader_changed", attrgetter("leader")),
)
#: Changes of a member: name, compared value, description.
_MEMBER_CHANGES: tuple[tuple[str, Callable[[MemberView], Any], Callable[[MemberView], str]], ...] = (
    (
        "subscription_changed",
        lambda member: (member.subscribed_topics, member.subscribed_regex),
        lambda member: _subscription(member),
    ),
    (
        "assignment_changed",
        lambda member: (member.assigned, member.assignment_problem is None),
        lambda member: _assignment(member),
    ),
)


def changes(before: GroupView | None, after: GroupView | None) -> tuple[Change, ...]:
    """The differences between two views of one group, where None is a missing group; empty for equal views.

    `change` is one of group_created, group_deleted, type_changed, rebalance (another generation or group epoch; where a poll does
    not know it, other members or owners), state_changed, protocol_changed, leader_changed, member_joined, member_left,
    subscription_changed, assignment_changed, assignment_unreadable.
    """
    if before == after:
        return ()
    if before is None and after is not None:
        return (
            Change("group_created", None, _described(after)),
            *(_joined(member) for member in after.members),
            *_unreadable({}, after.members),
        )
    if after is None and before is not None:
        return (
            *(Change("member_left", member.member_id, member.client_id) for member in before.members),
            Change("group_deleted", None, f"was {_described(before)}"),
        )
    assert before is not None
    assert after is not None
    return (*_group_changes(before, after), *_member_changes(before, after))


def _group_changes(before: GroupView, after: GroupView) -> list[Change]:
    changed = [
        Change(change, None, f"{_or_none(of(before))} → {_or_none(of(after))}")
        for change, of in _GROUP_CHANGES
        if of(before) != of(after) and not (change == _REBALANCE and _is_unknown(before, after))
    ]
    if _is_unknown(before, after) and _owned(before) != _owned(after):
        changed.append(Change(_REBALANCE, None, "other members or owners than at the last poll"))
    return changed


def _is_unknown(before: GroupView, after: GroupView) -> bool:
    """True if a generation is unknown."""
    return before.generation is None or after.generation is None


def _owned(group: GroupView) -> dict[str, tuple[TopicAssignment, ...]]:
    """Member → what it owns; a static member is known by its instance id, and may return without a rebalance."""
    return {member.group_instance_id or member.member_id: member.assigned for member in group.members}


def _member_changes(before: GroupView, after: GroupView) -> list[Change]:
    if before.members == after.members:
        return []
    old = {member.member_id: member for member in before.members}
    new = {member.member_id: member for member in after.members}
    left = [Change("member_left", m.member_id, m.client_id) for m in before.members if m.member_id not in new]
    joined = [_joined(m) for m in after.members if m.member_id not in old]
    changed = [
        Change(change, member.member_id, describe(member))
        for member in after.members
        if member.member_id in old
        for change, of, describe in _MEMBER_CHANGES
        if of(old[member.member_id]) != of(member)
    ]
    return [*left, *joined, *changed, *_unreadable(old, after.members)]


def _unreadable(old: Mapping[str, MemberView], members: Iterable[MemberView]) -> Iterator[Change]:
    """The members whose assignment cannot be read for a reason that they did not have before."""
    for member in members:
        before = old.get(member.member_id)
        if member.assignment_problem is not None and (before is None or before.assignment_problem != member.assignment_problem):
            yield Change(UNREADABLE_ASSIGNMENT, member.member_id, member.assignment_problem)


def _joined(member: MemberView) -> Change:
    return Change("member_joined", member.member_id, f"{member.client_id} {member.client_host}: {_assignment(member)}")


def _assignment(member: MemberView) -> str:
    if member.assignment_problem is not None:
        return "unreadable assignment"
    return "; ".join(f"{_topic(a)} {','.join(map(str, a.partitions))}" for a in member.assigned) or "no partitions"


def _topic(assignment: TopicAssignment) -> str:
    if assignment.topic is not None:
        return assignment.topic
    return "unknown topic" if assignment.topic_id is None else uuid_text(assignment.topic_id)


def _subscription(member: MemberView) -> str:
    topics = "unknown" if member.subscribed_topics is None else ", ".join(member.subscribed_topics)
    return f"{topics} /{member.subscribed_regex}/" if member.subscribed_regex else topics


def _described(group: GroupView) -> str:
    known = "unknown" if group.generation is None else group.generation
    return f"{group.group_type}, {group.state}, generation {known}"


def _or_none(value: object) -> str:
    return "none" if value is None else str(value)
