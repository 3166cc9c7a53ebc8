"""Members and the coordinator, both pure: groups that form, rebalance, and lose and regain members and coordinators."""

from typing import Any

import pytest
from coordinator_harness import GROUP, Harness
from hypothesis import given, settings
from hypothesis import strategies as st
from member_crowd import Crowd

from coordinator_core.assignors import (
    Assignor,
    BroadcastAssignor,
    Cluster,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.member import (
    MemberFailed,
    MemberSettings,
    MemberState,
    OffsetsCommitted,
    OffsetsFetched,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
)
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import OffsetToCommit

TOPICS = {"t": 6, "u": 3}
SESSION_MS = 500
REBALANCE_MS = 1000


def behaving(*assignors: Assignor, **more: Any) -> MemberSettings:
    timeouts = {"session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": REBALANCE_MS, "heartbeat_interval_ms": 50}
    return MemberSettings(GROUP, assignors or (RangeAssignor(),), **(timeouts | {"retry_backoff_ms": 20} | more))


def crowd_of(count: int, *assignors: Assignor, topics: tuple[str, ...] = ("t", "u")) -> Crowd:
    crowd = Crowd(Harness(group_max_size=100), TOPICS)
    for number in range(count):
        crowd.add(f"m{number}", behaving(*assignors), *topics)
    crowd.run(400)
    return crowd


def all_owned(crowd: Crowd) -> list[TopicPartition]:
    return sorted(partition for owned in crowd.owned().values() for partition in owned)


EVERYTHING = sorted(TopicPartition(topic, number) for topic, count in TOPICS.items() for number in range(count))
ONE_OWNER = [RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor()]
each_assignor = pytest.mark.parametrize("assignor", ONE_OWNER, ids=lambda assignor: assignor.name)


@each_assignor
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_group_forms_and_everything_has_one_owner(assignor: Assignor, count: int) -> None:
    crowd = crowd_of(count, assignor)

    assert crowd.stable
    assert all_owned(crowd) == EVERYTHING
    assert crowd.harness.group().protocol_name == assignor.name


def test_broadcast_gives_everything_to_every_member() -> None:
    assert crowd_of(3, BroadcastAssignor()).owned() == dict.fromkeys(["m0", "m1", "m2"], EVERYTHING)


def test_the_group_agrees_on_an_assignor_that_all_have() -> None:
    crowd = Crowd(Harness(), TOPICS)
    crowd.add("both", behaving(StickyAssignor(), RangeAssignor()), "t")
    crowd.add("one", behaving(RangeAssignor()), "t")
    crowd.run(400)

    assert crowd.stable
    assert crowd.harness.group().protocol_name == "range"


def test_a_member_without_a_common_assignor_fails() -> None:
    crowd = crowd_of(1, RangeAssignor())
    crowd.add("other", behaving(RoundRobinAssignor()), "t")
    crowd.run(200)

    assert crowd.members["other"].state is MemberState.FAILED
    problem = "JoinGroup of group 'groupId' failed: INCONSISTENT_GROUP_PROTOCOL"
    assert ("other", MemberFailed(problem, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)) in crowd.events


@each_assignor
def test_members_that_come_and_go(assignor: Assignor) -> None:
    crowd = crowd_of(2, assignor)
    crowd.add("m2", behaving(assignor), "t", "u")
    crowd.run(400)
    assert crowd.stable
    assert all_owned(crowd) == EVERYTHING
    assert all(crowd.owned().values())

    crowd.leave("m0")
    crowd.run(400)
    assert crowd.stable
    assert all_owned(crowd) == EVERYTHING

    crowd.vanish("m1")
    crowd.run(SESSION_MS + 400)
    assert crowd.owned() == {"m2": EVERYTHING}


def test_a_cooperative_member_keeps_reading_what_it_keeps() -> None:
    crowd = crowd_of(1, CooperativeStickyAssignor())
    crowd.events.clear()
    crowd.add("m1", behaving(CooperativeStickyAssignor()), "t", "u")
    crowd.run(400)

    revoked = [event for name, event in crowd.events if name == "m0" and isinstance(event, PartitionsRevoked)]
    assert [len(event.partitions) for event in revoked] == [4]
    assert sorted(revoked[0].partitions) == crowd.owned()["m1"]
    assert not [event for _, event in crowd.events if isinstance(event, PartitionsLost)]


def test_an_eager_member_gives_everything_up_first() -> None:
    crowd = crowd_of(1, StickyAssignor())
    crowd.events.clear()
    crowd.add("m1", behaving(StickyAssignor()), "t", "u")
    crowd.run(400)

    mine = [event for name, event in crowd.events if name == "m0"]
    assert mine == [PartitionsRevoked(tuple(EVERYTHING)), PartitionsAssigned(tuple(crowd.owned()["m0"]))]


def test_a_changed_subscription_makes_the_group_rebalance() -> None:
    crowd = crowd_of(2, CooperativeStickyAssignor())
    crowd.members["m0"].subscribe(["u"])
    crowd.run(400)

    assert crowd.stable
    assert {partition.topic for partition in crowd.owned()["m0"]} == {"u"}
    assert all_owned(crowd) == EVERYTHING


def test_the_leader_sees_that_a_topic_grew() -> None:
    crowd = crowd_of(2)
    for member in crowd.members.values():
        member.update_metadata(Cluster.of_counts(TOPICS | {"u": 4, "unwanted": 1}))
    crowd.run(400)

    assert crowd.stable
    assert all_owned(crowd) == sorted([*EVERYTHING, TopicPartition("u", 3)])


def test_metadata_without_a_change_for_the_group_causes_no_rebalance() -> None:
    crowd = crowd_of(2)
    crowd.events.clear()
    for member in crowd.members.values():
        member.update_metadata(Cluster.of_counts(TOPICS | {"unwanted": 1}))
    crowd.run(400)

    assert crowd.events == []
    assert crowd.harness.group().generation == max(member.generation for member in crowd.members.values())


def test_a_commit_and_what_is_fetched_of_it() -> None:
    crowd = crowd_of(1)
    member, partition = crowd.members["m0"], TopicPartition("t", 0)
    crowd.events.clear()
    crowd.send("m0", member.commit({partition: OffsetToCommit(7)}))
    crowd.send("m0", member.fetch((partition,)))
    crowd.run(10)

    (_, committed), (_, fetched) = crowd.events
    assert committed == OffsetsCommitted({partition: ErrorCode.NONE})
    assert isinstance(fetched, OffsetsFetched)
    assert fetched.offsets[partition].offset == 7


def test_a_member_that_was_thrown_out_comes_back_as_a_new_one() -> None:
    crowd = crowd_of(2)
    sleeper, old_id = crowd.members.pop("m1"), crowd.members["m0"].member_id
    sleeping_id = sleeper.member_id
    crowd.run(SESSION_MS + 400)
    assert crowd.owned() == {"m0": EVERYTHING}

    crowd.events.clear()
    crowd.members["m1"] = sleeper
    crowd.run(600)
    assert crowd.stable
    assert all_owned(crowd) == EVERYTHING
    assert sleeper.member_id not in (sleeping_id, "")
    assert crowd.members["m0"].member_id == old_id
    assert isinstance(next(event for name, event in crowd.events if name == "m1"), PartitionsLost)


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    crowd = Crowd(Harness(), TOPICS)
    for name in ("m0", "m1"):
        crowd.add(name, behaving(group_instance_id=name), "t", "u")
    crowd.run(400)
    before, generation = crowd.owned(), crowd.harness.group().generation

    crowd.leave("m1")
    crowd.add("m1", behaving(group_instance_id="m1"), "t", "u")
    crowd.run(400)

    assert crowd.owned() == before
    assert crowd.harness.group().generation == generation


def test_a_static_member_that_is_replaced_fails() -> None:
    crowd = Crowd(Harness(), TOPICS)
    crowd.add("old", behaving(group_instance_id="same"), "t")
    crowd.run(400)
    crowd.add("new", behaving(group_instance_id="same"), "t")
    crowd.run(400)

    assert crowd.members["old"].state is MemberState.FAILED
    assert crowd.members["new"].state is MemberState.STABLE


@each_assignor
def test_a_coordinator_that_dies_loads_and_goes_on(assignor: Assignor) -> None:
    crowd = crowd_of(3, assignor)
    before = crowd.owned()
    crowd.crash()
    crowd.run(600)

    assert crowd.stable
    assert crowd.owned() == before


def test_a_coordinator_that_dies_in_a_rebalance() -> None:
    crowd = crowd_of(3, CooperativeStickyAssignor())
    crowd.add("m3", behaving(CooperativeStickyAssignor()), "t", "u")
    crowd.run(20)
    crowd.crash()
    crowd.run(REBALANCE_MS + SESSION_MS + 600)

    assert crowd.stable
    assert all_owned(crowd) == EVERYTHING


@settings(max_examples=max(10, (settings.default or settings()).max_examples // 5))
@given(st.sampled_from(ONE_OWNER), st.data())
def test_whatever_happens_no_partition_has_two_owners_and_at_last_each_has_one(assignor: Assignor, data: st.DataObject) -> None:
    crowd = crowd_of(1, assignor)
    joined = 1
    for _ in range(data.draw(st.integers(1, 8))):
        what = data.draw(st.sampled_from(["join", "leave", "subscribe", "crash", "wait"]))
        names = sorted(crowd.members)
        if what == "join":
            crowd.add(f"m{joined}", behaving(assignor), "t", "u")
            joined += 1
        elif what == "leave" and len(names) > 1:
            crowd.leave(data.draw(st.sampled_from(names)))
        elif what == "subscribe":
            crowd.members[data.draw(st.sampled_from(names))].subscribe(data.draw(st.sampled_from([["t"], ["u"], ["t", "u"]])))
        elif what == "crash":
            crowd.crash()
        for _ in range(data.draw(st.integers(0, 12))):
            crowd.run(10)
            owned = all_owned(crowd)
            assert len(owned) == len(set(owned))

    crowd.run(REBALANCE_MS + SESSION_MS + 1000)
    wanted = {topic for member in crowd.members.values() for topic in member.topics}
    assert crowd.stable
    assert all_owned(crowd) == [partition for partition in EVERYTHING if partition.topic in wanted]
