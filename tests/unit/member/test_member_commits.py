"""A member with auto-commit, and one whose application has stopped polling; with the pure coordinator."""

from typing import Any, TypeVar

import pytest
from coordinator_harness import GROUP, Harness
from member_crowd import Crowd

from coordinator_core import assignors
from coordinator_core.assignors import Assignor, CooperativeStickyAssignor, RangeAssignor
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.member import MemberSettings, MemberState, PartitionsLost
from coordinator_core.protocol.membership import JoinGroupRequest, LeaveGroupRequest
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetToCommit

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
#: In the notation of assignors.
EVERYTHING = [assignors.TopicPartition(*partition) for partition in (T0, T1)]
POLL_MS = 1_000
Sent = TypeVar("Sent")


def crowd_of(*names: str, era: str = "4", **more: Any) -> Crowd:
    crowd = Crowd(Harness(era), {"t": 2})
    timeouts = {"session_timeout_ms": 500, "rebalance_timeout_ms": POLL_MS, "heartbeat_interval_ms": 50, "retry_backoff_ms": 20}
    settings: dict[str, Any] = {"assignors": (RangeAssignor(),), "auto_commit_interval_ms": 200} | timeouts | more
    for name in names:
        crowd.add(name, MemberSettings(GROUP, **settings), "t")
    crowd.run(400)
    assert crowd.stable
    return crowd


def sent(crowd: Crowd, kind: type[Sent]) -> list[Sent]:
    return [call.request for call in crowd.harness.calls if isinstance(call.request, kind)]


@pytest.mark.parametrize("era", ["0.9", "0.10", "1", "2", "3", "4"])
def test_positions_are_committed_by_the_interval(era: str) -> None:
    crowd = crowd_of("m", era=era)
    crowd.members["m"].consumed({T0: OffsetToCommit(5), TopicPartition("other", 0): OffsetToCommit(1)})
    crowd.run(100)
    before = len(sent(crowd, OffsetCommitRequest))
    crowd.run(400)

    assert len(sent(crowd, OffsetCommitRequest)) - before == 2
    assert crowd.harness.fetched() == {T0: 5}


def test_without_auto_commit_nothing_is_committed() -> None:
    crowd = crowd_of("m", enable_auto_commit=False)
    crowd.members["m"].consumed({T0: OffsetToCommit(5)})
    crowd.run(1_000)

    assert sent(crowd, OffsetCommitRequest) == []


@pytest.mark.parametrize("assignor", [RangeAssignor(), CooperativeStickyAssignor()], ids=lambda assignor: assignor.name)
def test_positions_are_committed_before_partitions_are_given_up(assignor: Assignor) -> None:
    """Commit and JoinGroup are sent in this order on one connection: the commit belongs to the generation that ends."""
    crowd = crowd_of("m", assignors=(assignor,), auto_commit_interval_ms=100_000)
    crowd.members["m"].consumed({T0: OffsetToCommit(5), T1: OffsetToCommit(6)})
    crowd.add("n", MemberSettings(GROUP, (assignor,), session_timeout_ms=500, heartbeat_interval_ms=50), "t")
    crowd.run(400)
    requests = [call.request for call in crowd.harness.calls]
    committed = next(number for number, request in enumerate(requests) if isinstance(request, OffsetCommitRequest))

    assert requests[committed].generation == 1
    assert isinstance(requests[committed + 1], JoinGroupRequest)
    assert crowd.harness.fetched() == {T0: 5, T1: 6}
    assert crowd.stable


def test_positions_are_committed_when_the_member_leaves() -> None:
    crowd = crowd_of("m", auto_commit_interval_ms=100_000)
    crowd.members["m"].consumed({T0: OffsetToCommit(5)})
    crowd.leave("m")

    assert crowd.harness.fetched() == {T0: 5}
    assert len(sent(crowd, LeaveGroupRequest)) == 1


def test_a_member_that_does_not_leave_on_close_is_missed_later() -> None:
    crowd = crowd_of("m", leave_group_on_close=False)
    crowd.leave("m")

    assert sent(crowd, LeaveGroupRequest) == []
    assert len(crowd.harness.group()) == 1
    crowd.run(600)
    assert len(crowd.harness.group()) == 0


@pytest.mark.parametrize("instance", [None, "a"])
def test_a_member_that_is_not_polled_gives_up_its_partitions(instance: str | None) -> None:
    crowd = crowd_of("m", "n", group_instance_id=None) if instance is None else crowd_of("m", group_instance_id=instance)
    member = crowd.members["m"]
    member.polled(crowd.harness.now_ms)
    crowd.run(POLL_MS - 100)
    assert crowd.stable
    crowd.run(200)

    assert member.state is MemberState.UNJOINED
    assert [type(event) for name, event in crowd.events if name == "m"][-1] is PartitionsLost
    assert member.next_wake() is None
    assert len(sent(crowd, LeaveGroupRequest)) == (instance is None)
    if instance is None:
        crowd.run(400)
        assert crowd.owned() == {"m": [], "n": EVERYTHING}

    member.polled(crowd.harness.now_ms)
    crowd.run(400)
    assert crowd.stable
    assert sorted(partition for owned in crowd.owned().values() for partition in owned) == EVERYTHING


def test_an_interval_of_nothing() -> None:
    with pytest.raises(ValueError, match="auto_commit_interval_ms is 0"):
        MemberSettings(GROUP, auto_commit_interval_ms=0)
