"""Events that the coordinator emits to observers: the group, and the reason."""

from coordinator_harness import DELAY_MS, GROUP, START_MS, TIMEOUT_MS, Harness

from coordinator_core.group_coordinator.group_events import (
    GenerationBegan,
    GroupRemoved,
    GroupStabilized,
    MemberIdGiven,
    MemberJoined,
    MemberRemoved,
    RebalanceBegan,
)
from coordinator_core.group_coordinator.result import CoordinatorResult
from coordinator_core.group_coordinator.shard import GroupCoordinatorShard
from coordinator_core.protocol.api import CoordinatorRequest
from coordinator_core.protocol.groups import DeleteGroupRequest
from coordinator_core.protocol.membership import (
    JoinGroupRequest,
    LeaveGroupRequest,
    LeavingMember,
    Protocol,
    SyncGroupRequest,
)


class Watched:
    """A shard whose log takes everything immediately; collects the emitted events."""

    def __init__(self) -> None:
        config = Harness("4").config
        self.now_ms = START_MS
        self.shard = GroupCoordinatorShard(0, config, lambda name: f"{name}-id")
        self.shard.begin_load(1, self.now_ms)
        self.end_offset = 0
        self.emitted: list[object] = []
        self.take(self.shard.finish_load(self.now_ms))

    def take(self, result: CoordinatorResult) -> None:
        self.emitted += result.group_events
        for write in result.writes:
            base = self.end_offset
            self.end_offset += max(len(write.records), 1)
            self.take(self.shard.appended(write, base, self.now_ms))

    def handle(self, request: CoordinatorRequest) -> list[object]:
        self.emitted.clear()
        self.take(self.shard.handle(request, "reply_handle", self.now_ms))
        return self.emitted

    def later(self, ms: int) -> list[object]:
        self.emitted.clear()
        self.now_ms += ms
        self.take(self.shard.timers_due(self.now_ms))
        return self.emitted


def join(member_id: str = "", reason: str | None = None) -> JoinGroupRequest:
    protocols = (Protocol("range", b""),)
    return JoinGroupRequest(
        GROUP, member_id, "consumer", protocols, TIMEOUT_MS, TIMEOUT_MS, client_id="c", client_host="/10.0.0.1", reason=reason
    )


def test_the_life_of_a_group() -> None:
    at = Watched()
    assert at.handle(join()) == [MemberIdGiven(GROUP, "c-id")]
    assert at.handle(join("c-id", "a new start")) == [
        MemberJoined(GROUP, "c-id", None, "c", "/10.0.0.1"),
        RebalanceBegan(GROUP, "Empty", 0, "member c-id joined: a new start"),
    ]
    assert at.later(DELAY_MS) == [GenerationBegan(GROUP, 1, 1, "range", "c-id")]
    assert at.handle(SyncGroupRequest(GROUP, 1, "c-id", assignments={"c-id": b"x"})) == [GroupStabilized(GROUP, 1, 1)]
    assert at.handle(LeaveGroupRequest(GROUP, (LeavingMember("c-id", None, "closing"),))) == [
        MemberRemoved(GROUP, "c-id", "LeaveGroup: closing"),
        RebalanceBegan(GROUP, "Stable", 1, "member c-id was removed: LeaveGroup: closing"),
        GenerationBegan(GROUP, 2, 0, None, None),
    ]
    assert at.handle(DeleteGroupRequest(GROUP)) == [GroupRemoved(GROUP, "deleted", 0)]


def test_a_session_that_ends() -> None:
    at = Watched()
    at.handle(join())
    at.handle(join("c-id"))
    at.later(DELAY_MS)
    at.handle(SyncGroupRequest(GROUP, 1, "c-id"))
    emitted = at.later(TIMEOUT_MS + 1)
    assert emitted[0] == MemberRemoved(GROUP, "c-id", "session timeout")
    assert emitted[1] == RebalanceBegan(GROUP, "Stable", 1, "member c-id was removed: session timeout")
