"""Polls of a service that behaves as Azure Event Hubs, with planted truth: what becomes a row, and what never may.

ListGroups leaves a group out when its last member leaves, and DescribeGroups reports it as Dead. Its offsets stay, and are
answered by name (azure-event-hubs-for-kafka #100, #125). The host of each member is 0.0.0.0.
"""

import random
from typing import Any

import pytest
from fake_coordinators import FakeCoordinators
from polled_groups import FollowedPolls

from coordinator_core.group_polls.group_poller import GroupPoller
from coordinator_core.group_polls.poll_fold import PollFold, group_view
from coordinator_core.state.era import Era

ERA = Era.named("4")
GROUPS = tuple(f"app-{number}" for number in range(6))
TOPICS = ("orders", "bills")


class EventHubs(FakeCoordinators):
    """One address for all groups. A group exists from its first commit until it is deleted."""

    def __init__(self) -> None:
        super().__init__({}, nodes=(0,))

    def commit(self, group_id: str, topic: str, offset: int) -> None:
        self.groups.setdefault(group_id, (0, {}))[1][topic] = offset
        self._hide()

    def join(self, group_id: str, member_id: str) -> None:
        self.groups.setdefault(group_id, (0, {}))
        self.members.setdefault(group_id, set()).add(member_id)
        self._hide()

    def leave(self, group_id: str) -> None:
        self.members.pop(group_id, None)
        self._hide()

    def delete(self, group_id: str) -> None:
        self.groups.pop(group_id, None)
        self.leave(group_id)

    def _hide(self) -> None:
        self.unlisted = self.undescribed = set(self.groups) - self.members.keys()


class Follower:
    """Polls of the service, merged as the tables merge them."""

    def __init__(self, service: EventHubs) -> None:
        connection: Any = service
        self._poller = GroupPoller(connection, lambda: 1_000)
        self.fold, self.tables = PollFold(ERA), FollowedPolls()

    def poll(self) -> None:
        known = {group_id: tuple(stored.offsets) for group_id, stored in self.fold.groups.items()}
        self.tables.merge(self.fold.apply(self._poller.poll(known), self.tables.next_offset))

    def members(self, group_id: str) -> tuple[str, ...]:
        view = group_view(ERA, group_id, self.fold.groups[group_id].records, {})
        return () if view is None else tuple(member.member_id for member in view.members)

    def offsets(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for (group_id, topic, _), (offset, _) in self.tables.offsets.items():
            found.setdefault(group_id, {})[topic] = offset
        return found


def test_a_group_that_vanishes_from_the_list_stays_with_its_offsets() -> None:
    service = EventHubs()
    service.join("billing", "namespace-m1")
    service.commit("billing", "orders", 7)
    follower = Follower(service)
    follower.poll()
    service.leave("billing")
    for _ in range(4):
        follower.poll()
    assert (follower.offsets(), follower.members("billing")) == ({"billing": {"orders": 7}}, ())
    service.commit("billing", "orders", 9)
    follower.poll()
    assert follower.offsets() == {"billing": {"orders": 9}}
    service.join("billing", "namespace-m2")
    follower.poll()
    assert follower.members("billing") == ("namespace-m2",)
    assert [change for _, change, _ in follower.tables.changes if change in ("group_deleted", "poll_missing")] == []


def test_a_deleted_group_is_removed_by_the_second_poll_of_its_name() -> None:
    service = EventHubs()
    service.join("billing", "m1")
    service.commit("billing", "orders", 7)
    follower = Follower(service)
    follower.poll()
    service.delete("billing")
    follower.poll()
    assert follower.offsets() == {"billing": {"orders": 7}}
    follower.poll()
    assert (follower.offsets(), dict(follower.fold.groups)) == ({}, {})


@pytest.mark.parametrize("seed", range(8))
def test_no_group_is_lost_and_none_is_invented(seed: int) -> None:
    """Random joins, leaves, commits, deletions and polls. After two polls of a quiet moment the tables are the truth.

    Each group has members and a commit at the first poll: the list never names one without members.
    """
    draw = random.Random(seed)
    service = EventHubs()
    follower = Follower(service)
    for group_id in GROUPS:
        service.join(group_id, "m1")
        service.commit(group_id, "orders", 0)
    follower.poll()
    deleted: set[str] = set()
    for step in range(60):
        group_id = draw.choice(GROUPS)
        match draw.randrange(8):
            case 0 | 1 if group_id not in deleted:
                service.join(group_id, f"m{draw.randrange(3)}")
            case 2 | 3 if group_id not in deleted:
                service.leave(group_id)
            case 4 | 5 if group_id not in deleted:
                service.commit(group_id, draw.choice(TOPICS), step)
            case 6 if len(deleted) < 2:
                service.delete(group_id)
                deleted.add(group_id)
            case _:
                follower.poll()
    follower.poll()
    follower.poll()
    truth = {group_id: offsets for group_id, (_, offsets) in service.groups.items() if offsets}
    assert follower.offsets() == truth
    assert {group_id: follower.members(group_id) for group_id in follower.fold.groups if follower.members(group_id)} == {
        group_id: tuple(sorted(members)) for group_id, members in service.members.items()
    }
    removed = {group_id for group_id, change, _ in follower.tables.changes if change == "group_deleted"}
    assert removed == deleted
