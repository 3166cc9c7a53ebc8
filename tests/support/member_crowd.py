"""A crowd of group members in front of the pure coordinator: messages are passed on directly, and the test has the clock."""

from collections.abc import Iterator

from coordinator_harness import Call, Harness
from expecting import expect

from coordinator_core.assignors import Cluster, TopicPartition
from coordinator_core.member import Effects, Event, GroupMember, MemberSettings, MemberState
from coordinator_core.protocol.api import CoordinatorRequest, Request
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
    Node,
)

HERE = Node(0, "localhost", 9092)


def found(request: FindCoordinatorRequest, error: ErrorCode = ErrorCode.NONE) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(tuple(FoundCoordinator(key, error, HERE) for key in request.keys))


class Crowd:
    """Members by name. `events` has their events, in order."""

    def __init__(self, harness: Harness, topics: dict[str, int]) -> None:
        self.harness = harness
        self.metadata = Cluster.of_counts(topics)
        self.members: dict[str, GroupMember] = {}
        self.events: list[tuple[str, Event]] = []
        self._calls: dict[str, list[Call]] = {}

    def add(self, name: str, settings: MemberSettings, *topics: str) -> GroupMember:
        self.members[name] = GroupMember(settings, topics, self.metadata)
        self._calls[name] = []
        return self.members[name]

    def leave(self, name: str) -> None:
        """Leave the group with LeaveGroup, if the member sends one."""
        self._take(name, self.members[name].leave())
        del self.members[name], self._calls[name]

    def vanish(self, name: str) -> None:
        """Stop sending requests."""
        del self.members[name], self._calls[name]

    def send(self, name: str, request: Request) -> None:
        """Send a commit or a fetch of a member."""
        self._take(name, Effects((), (request,)))

    def run(self, ms: int, step_ms: int = 10) -> None:
        """Advance the clock in steps and run every timer that expires, until no work is left for that time."""
        for _ in range(ms // step_ms):
            self.harness.advance(step_ms)
            while any([self._turn(name) for name in list(self.members)]):
                pass

    def crash(self) -> None:
        """Stop the coordinator and load the log into a new one; connections break."""
        self.harness.crash()
        for name, member in self.members.items():
            self._calls[name].clear()
            self._take(name, member.disconnected(self.harness.now_ms))

    def owned(self) -> dict[str, list[TopicPartition]]:
        return {name: sorted(TopicPartition(*partition) for partition in member.owned) for name, member in self.members.items()}

    @property
    def stable(self) -> bool:
        return all(member.state is MemberState.STABLE for member in self.members.values())

    def _turn(self, name: str) -> bool:
        member, now = self.members[name], self.harness.now_ms
        busy = False
        for call in self._answered(name):
            self._take(name, member.receive(call.request, call.response, now))
            busy = True
        due = member.next_wake()
        if due is not None and due <= now:
            self._take(name, member.wake(now))
            busy = True
        return busy

    def _answered(self, name: str) -> Iterator[Call]:
        for call in list(self._calls[name]):
            if call.answered:
                self._calls[name].remove(call)
                yield call

    def _take(self, name: str, effects: Effects) -> None:
        self.events += [(name, event) for event in effects.events]
        for request in effects.requests:
            if isinstance(request, CoordinatorRequest):
                call = self.harness.send(request)
            else:
                call = Call(request)
                call.answers.append(found(expect(FindCoordinatorRequest, request)))
            self._calls[name].append(call)
