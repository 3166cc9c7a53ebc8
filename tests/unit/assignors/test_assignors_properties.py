"""Invariants of every group: partitions owned once, equal shares, no needless losses, no premature gains."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from consumer_groups import ConsumerGroup
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sticky_subscriptions import improvement

from coordinator_core.assignors import (
    Assignor,
    BroadcastAssignor,
    Cluster,
    CooperativeStickyAssignor,
    PartitionInfo,
    RackAwareAssignor,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    Subscription,
    TopicPartition,
)
from coordinator_core.assignors.model import Assignment

Draw = Callable[[st.SearchStrategy[Any]], Any]
TOPICS = [f"t{number}" for number in range(4)]
MEMBERS = [f"c{number}" for number in range(6)]
RACKS = ["a", "b", "c"]
BUILT_IN = [RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor()]
ONE_OWNER = [*BUILT_IN, StickyAssignor(equals_apart=False), RandomAssignor(lambda count: count // 2), RackAwareAssignor()]

counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9), max_size=4)
wanted = st.sets(st.sampled_from(TOPICS), max_size=4).map(sorted).map(tuple)
racks = st.none() | st.sampled_from(RACKS)
replica_racks = st.builds(lambda replicas: (min(replicas), frozenset(replicas)), st.sets(st.sampled_from(RACKS), min_size=1))
cooperative = st.just(CooperativeStickyAssignor())
sticky = st.sampled_from([StickyAssignor(), StickyAssignor(equals_apart=False), CooperativeStickyAssignor()])
few = settings(max_examples=max(12, (settings.default or settings()).max_examples // 5))
some = settings(max_examples=max(30, (settings.default or settings()).max_examples // 2))


@st.composite
def clusters(draw: st.DrawFn, racked: bool | None = None) -> Cluster:
    """Topics, with replicas in racks or without."""
    topics = draw(counts)
    if not (draw(st.booleans()) if racked is None else racked):
        return Cluster.of_counts(topics)
    return Cluster(
        {topic: tuple(PartitionInfo(number, *draw(replica_racks)) for number in range(count)) for topic, count in topics.items()}
    )


@st.composite
def subscriptions(draw: st.DrawFn) -> dict[str, Subscription]:
    return {
        member: Subscription(draw(wanted), rack_id=draw(racks), group_instance_id=draw(st.none() | st.just(f"i{member}")))
        for member in sorted(draw(st.sets(st.sampled_from(MEMBERS), min_size=1)))
    }


@few
@pytest.mark.parametrize("assignor", ONE_OWNER, ids=lambda assignor: assignor.name)
@given(clusters(), subscriptions())
def test_every_wanted_partition_has_one_owner_that_wants_it(
    assignor: Assignor, metadata: Cluster, members: dict[str, Subscription]
) -> None:
    assignments = assignor.assign(metadata, members)
    owners = Counter(partition for assignment in assignments.values() for partition in assignment.partitions)
    topics = {topic for member in members.values() for topic in member.topics}

    assert set(assignments) == set(members)
    assert owners == Counter(
        TopicPartition(topic, info.partition) for topic, infos in metadata.topics.items() if topic in topics for info in infos
    )
    assert all(partition.topic in members[member].topics for member in members for partition in assignments[member].partitions)


@few
@given(clusters(), subscriptions())
def test_broadcast_owns_all_that_is_wanted(metadata: Cluster, members: dict[str, Subscription]) -> None:
    for member, assignment in BroadcastAssignor().assign(metadata, members).items():
        assert set(assignment.partitions) == {
            TopicPartition(topic, info.partition) for topic in members[member].topics for info in metadata.topics.get(topic, ())
        }


@few
@pytest.mark.parametrize("assignor", BUILT_IN, ids=lambda assignor: assignor.name)
@given(clusters(), subscriptions(), st.randoms())
def test_the_order_of_members_in_the_response_means_nothing(
    assignor: Assignor, metadata: Cluster, members: dict[str, Subscription], random: Random
) -> None:
    shuffled = list(members.items())
    random.shuffle(shuffled)

    assert assignor.assign(metadata, dict(shuffled)) == assignor.assign(metadata, members)


@few
@given(clusters(), subscriptions())
def test_racks_change_no_share_of_range(metadata: Cluster, members: dict[str, Subscription]) -> None:
    without = Cluster.of_counts({topic: len(infos) for topic, infos in metadata.topics.items()})

    def shares(assignments: dict[str, Assignment]) -> dict[str, list[int]]:
        owned = [Counter(partition.topic for partition in assignment.partitions) for assignment in assignments.values()]
        return {topic: sorted(each[topic] for each in owned) for topic in TOPICS}

    assert shares(RangeAssignor().assign(metadata, members)) == shares(RangeAssignor().assign(without, members))


@st.composite
def groups(
    draw: st.DrawFn, assignors: st.SearchStrategy[Assignor] = sticky, alike: bool | None = None, racked: bool | None = None
) -> ConsumerGroup:
    """A group that has rebalanced until no member has to give up a partition."""
    group = ConsumerGroup(draw(assignors), draw(clusters(racked)))
    same = draw(wanted) if (draw(st.booleans()) if alike is None else alike) else None
    for member in sorted(draw(st.sets(st.sampled_from(MEMBERS), min_size=1))):
        group.join(member, *(draw(wanted) if same is None else same), rack=draw(racks))
    group.settle()
    return group


def change(draw: Draw, group: ConsumerGroup, racked: bool | None = None) -> None:
    """One change that makes groups rebalance; members with equal subscriptions keep them equal."""
    kind = draw(st.sampled_from(["join", "leave", "subscribe", "topics", "nothing"]))
    present = sorted(group.members)
    absent = [member for member in MEMBERS if member not in group.members]
    subscribed = {member.topics for member in group.members.values()}
    wants = st.sampled_from(sorted(subscribed)) if len(subscribed) == 1 else wanted
    if kind == "join" and absent:
        group.join(draw(st.sampled_from(absent)), *draw(wants), rack=draw(racks))
    elif kind == "leave" and len(present) > 1:
        group.leave(draw(st.sampled_from(present)))
    elif kind == "subscribe":
        group.subscribe(draw(st.sampled_from(present)), *draw(wants))
    elif kind == "topics":
        group.metadata = draw(clusters(racked))


def complaint(group: ConsumerGroup) -> str | None:
    subscribed = {name: Subscription(member.topics) for name, member in group.members.items()}
    return improvement(group.metadata, subscribed, group.owned_partitions())


@given(groups(), st.data())
def test_sticky_shares_are_as_equal_as_can_be_after_every_change(group: ConsumerGroup, data: st.DataObject) -> None:
    assert complaint(group) is None
    for _ in range(3):
        change(data.draw, group)
        group.settle()
        assert complaint(group) is None


@some
@given(groups(racked=False))
def test_sticky_changes_nothing_if_nothing_changed(group: ConsumerGroup) -> None:
    """With racks it may change, as in Kafka: a member with a far partition has to offer it to the others."""
    before = group.owned_partitions()

    group.rebalance()

    assert group.owned_partitions() == before


@some
@given(groups(alike=True, racked=False), st.data())
def test_sticky_keeps_as_much_as_equal_shares_let_it_if_all_want_the_same(group: ConsumerGroup, data: st.DataObject) -> None:
    before = group.owned_partitions()
    change(data.draw, group, racked=False)
    group.settle()
    after = group.owned_partitions()

    there = frozenset().union(*after.values())
    owned = [len(before.get(member, frozenset()) & there) for member in after]
    low, rich = divmod(len(there), len(after))
    can_stay = sum(min(low, count) for count in owned) + min(rich, sum(count > low for count in owned))
    assert sum(len(before.get(member, frozenset()) & after[member]) for member in after) == can_stay


@some
@given(groups(alike=True, racked=False), st.data())
def test_no_member_loses_anything_when_another_leaves_if_all_subscribe_to_the_same(
    group: ConsumerGroup, data: st.DataObject
) -> None:
    before = group.owned_partitions()
    assume(len(before) > 1)
    group.leave(data.draw(st.sampled_from(sorted(before))))
    group.settle()

    assert all(before[member] <= owned for member, owned in group.owned_partitions().items())


@given(groups(racked=False), st.data())
def test_no_two_members_swap_partitions_of_a_topic(group: ConsumerGroup, data: st.DataObject) -> None:
    """`AbstractStickyAssignor.isSticky`"""
    before = group.owned_partitions()
    change(data.draw, group, racked=False)
    group.rebalance()

    old = {partition: member for member in before for partition in before[member]}
    wants = {name: member.topics for name, member in group.members.items()}
    moves = {
        (partition.topic, old[partition], member)
        for member, owned in group.owned_partitions().items()
        for partition in owned
        if partition in old and partition.topic in wants.get(old[partition], ())
    }
    assert not {(topic, target, source) for topic, source, target in moves if source != target} & moves


@given(groups(cooperative), st.data())
def test_cooperative_gives_no_partition_to_a_new_owner_while_the_old_one_has_it(
    group: ConsumerGroup, data: st.DataObject
) -> None:
    for _ in range(3):
        change(data.draw, group)
        before = group.owned_partitions()
        group.rebalance()
        after = group.owned_partitions()
        for member in after:
            gained = after[member] - before.get(member, frozenset())
            for other in after.keys() & before.keys() - {member}:
                assert not [partition for partition in gained & before[other] if partition.topic in group.members[other].topics]


@some
@given(groups(cooperative, racked=False), st.data())
def test_cooperative_settles_in_two_rebalances(group: ConsumerGroup, data: st.DataObject) -> None:
    change(data.draw, group, racked=False)

    assert group.settle() <= 2


@some
@given(groups(cooperative, racked=True), st.data())
def test_cooperative_converges_where_racks_matter(group: ConsumerGroup, data: st.DataObject) -> None:
    change(data.draw, group, racked=True)

    assert group.settle() <= 4


@some
@given(groups(cooperative, alike=True, racked=False), st.data())
def test_cooperative_converges_to_the_assignment_of_eager_sticky(group: ConsumerGroup, data: st.DataObject) -> None:
    """After one rebalance members have the sticky assignment, less what others still own; after the second, all of it."""
    before = group.owned_partitions()
    knowing = {name: StickyAssignor(member.owned, member.generation) for name, member in group.members.items()}
    change(data.draw, group, racked=False)
    eager = ConsumerGroup(StickyAssignor(), group.metadata)
    for name, member in group.members.items():
        eager.join(name, *member.topics, assignor=knowing.get(name))
    eager.rebalance()
    target = eager.owned_partitions()

    group.rebalance()
    first = group.owned_partitions()
    group.rebalance()
    second = group.owned_partitions()

    for name in target:
        of_others = frozenset().union(*(before[other] for other in before.keys() & target.keys() - {name}))
        assert first[name] <= target[name]
        assert target[name] - first[name] <= of_others
        assert first[name] <= second[name]
    assert sorted(map(len, second.values())) == sorted(map(len, target.values()))
