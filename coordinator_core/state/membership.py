"""Membership and ownership of a group: what a record changed, as numbers and sets of partitions. Pure.

`history.changes` describes the same differences in words.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from coordinator_core.state.views import GroupView, MemberView

#: State of a group that does not exist any more.
DEAD = "Dead"

#: Topic id and name, one of which may be None, → partitions.
_Partitions = dict[UUID | str, frozenset[int]]


class MembershipChange(NamedTuple):
    """State, generation and members of a group after a record that changed one of them, or the owner of a partition.

    The `previous_` values are None if the group did not exist. After a removal `state` is DEAD, and type and generation are the
    last ones. An unknown generation is -1. A static member that returns under a new member id counts as
    replaced, and its partitions keep their owner. A transferred partition is one of those gained and of those lost.
    `topics_changed`: the record has new metadata of the subscribed topics. `members_unreadable` have an assignment that cannot be
    read, so that their partitions are unknown; None for no such member.
    """

    group_id: str
    group_type: str
    state: str
    previous_state: str | None
    generation: int
    previous_generation: int | None
    protocol: str | None
    state_timestamp: int | None
    member_count: int
    previous_member_count: int | None
    members_with_partitions: int
    members_joined: int
    members_left: int
    members_replaced: int
    subscriptions_changed: int
    topics_changed: bool
    partitions_gained: int
    partitions_lost: int
    partitions_transferred: int
    members_unreadable: int | None = None


class OwnershipChange(NamedTuple):
    """Partitions of a topic that a member gained and lost, sorted. `topic` is None for an unknown topic id."""

    group_id: str
    generation: int
    topic: str | None
    topic_id: UUID | None
    member: MemberView
    gained: tuple[int, ...]
    lost: tuple[int, ...]


class MembershipChanges(NamedTuple):
    """Effect of a record on the members of its group."""

    membership: MembershipChange | None
    ownership: tuple[OwnershipChange, ...]


_NONE = MembershipChanges(None, ())


def membership_changes(before: GroupView | None, after: GroupView | None, *, topics_changed: bool = False) -> MembershipChanges:
    """The differences between two views of one group, where None is a missing group."""
    shown = after or before
    if shown is None or (before == after and not topics_changed):
        return _NONE
    old, new = _members(before), _members(after)
    is_same = old == new
    counts = _Counts() if is_same else _Counts.of(old, new)
    row = MembershipChange(
        group_id=shown.group_id,
        group_type=shown.group_type,
        state=DEAD if after is None else after.state,
        previous_state=None if before is None else before.state,
        generation=shown.generation_number,
        previous_generation=None if before is None else before.generation_number,
        protocol=shown.protocol,
        state_timestamp=None if after is None else after.state_timestamp,
        member_count=len(new),
        previous_member_count=None if before is None else len(old),
        members_with_partitions=sum(1 for member in new if member.assigned),
        members_joined=counts.joined,
        members_left=counts.left,
        members_replaced=counts.replaced,
        subscriptions_changed=counts.subscriptions,
        topics_changed=topics_changed,
        partitions_gained=counts.gained,
        partitions_lost=counts.lost,
        partitions_transferred=counts.transferred,
        members_unreadable=_unreadable(new),
    )
    ownership = () if is_same else tuple(_ownership(shown, old, new))
    return MembershipChanges(row if _is_change(row, before) else None, ownership)


def _members(view: GroupView | None) -> tuple[MemberView, ...]:
    return () if view is None else view.members


def _is_change(row: MembershipChange, before: GroupView | None) -> bool:
    return (
        before is None
        or row.topics_changed
        or (row.state, row.generation, row.member_count) != (row.previous_state, row.previous_generation, len(before.members))
        or any((row.members_joined, row.members_left, row.members_replaced, row.subscriptions_changed))
        or any((row.partitions_gained, row.partitions_lost))
        or row.members_unreadable != _unreadable(before.members)
    )


def _unreadable(members: tuple[MemberView, ...]) -> int | None:
    return sum(member.assignment_problem is not None for member in members) or None


class _Counts(NamedTuple):
    joined: int = 0
    left: int = 0
    replaced: int = 0
    subscriptions: int = 0
    gained: int = 0
    lost: int = 0
    transferred: int = 0

    @classmethod
    def of(cls, old: tuple[MemberView, ...], new: tuple[MemberView, ...]) -> "_Counts":
        """Compare two lists of members; a static member is known by its instance id."""
        before, after = _by_identity(old), _by_identity(new)
        both = [(before[identity], after[identity]) for identity in before.keys() & after.keys()]
        joined = [after[identity] for identity in after.keys() - before.keys()]
        left = [before[identity] for identity in before.keys() - after.keys()]
        changed = [(_assigned(one), _assigned(other)) for one, other in both if one.assigned != other.assigned]
        gained = [*map(_assigned, joined), *(_without(has, had) for had, has in changed)]
        lost = [*map(_assigned, left), *(_without(had, has) for had, has in changed)]
        return cls(
            joined=len(joined),
            left=len(left),
            replaced=sum(1 for one, other in both if one.member_id != other.member_id),
            subscriptions=sum(1 for one, other in both if _subscription(one) != _subscription(other)),
            gained=sum(map(_size, gained)),
            lost=sum(map(_size, lost)),
            transferred=_size(_common(_union(gained), _union(lost))) if gained and lost else 0,
        )


def _by_identity(members: tuple[MemberView, ...]) -> dict[tuple[bool, str], MemberView]:
    """Members by instance id, or else member id. Of two members with one instance id, which no broker admits, the last counts."""
    return {
        (False, member.member_id) if member.group_instance_id is None else (True, member.group_instance_id): member
        for member in members
    }


def _subscription(member: MemberView) -> tuple[tuple[str, ...] | None, str | None]:
    return member.subscribed_topics, member.subscribed_regex


def _assigned(member: MemberView) -> _Partitions:
    found: _Partitions = {}
    for part in member.assigned:
        topic = part.topic_id or part.topic
        if topic is not None:
            found[topic] = found.get(topic, frozenset()).union(part.partitions)
    return found


def _size(partitions: _Partitions) -> int:
    return sum(map(len, partitions.values()))


def _without(partitions: _Partitions, others: _Partitions) -> _Partitions:
    return {topic: numbers - others.get(topic, frozenset()) for topic, numbers in partitions.items()}


def _common(some: _Partitions, others: _Partitions) -> _Partitions:
    return {topic: numbers & others.get(topic, frozenset()) for topic, numbers in some.items()}


def _union(parts: Iterable[_Partitions]) -> _Partitions:
    found: dict[UUID | str, list[frozenset[int]]] = {}
    for part in parts:
        for topic, numbers in part.items():
            found.setdefault(topic, []).append(numbers)
    return {topic: frozenset().union(*sets) for topic, sets in found.items()}


def _ownership(group: GroupView, old: tuple[MemberView, ...], new: tuple[MemberView, ...]) -> Iterator[OwnershipChange]:
    before, after = ({member.member_id: member for member in members} for members in (old, new))
    for member_id in sorted(before.keys() | after.keys()):
        was, now = before.get(member_id), after.get(member_id)
        if was is None or now is None or was.assigned != now.assigned:
            yield from _of_member(group, was, now)


def _of_member(group: GroupView, was: MemberView | None, now: MemberView | None) -> Iterator[OwnershipChange]:
    shown = now or was
    assert shown is not None, "a member exists before or after"
    had, has = ({} if member is None else _assigned(member) for member in (was, now))
    names = {part.topic_id or part.topic: part for member in (was, now) if member is not None for part in member.assigned}
    for topic in sorted(had.keys() | has.keys(), key=str):
        gained = has.get(topic, frozenset()) - had.get(topic, frozenset())
        lost = had.get(topic, frozenset()) - has.get(topic, frozenset())
        if gained or lost:
            part = names[topic]
            yield OwnershipChange(
                group.group_id,
                group.generation_number,
                part.topic,
                part.topic_id,
                shown,
                tuple(sorted(gained)),
                tuple(sorted(lost)),
            )
