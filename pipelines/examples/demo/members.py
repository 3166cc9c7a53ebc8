"""Group members that consume continuously and commit. They fetch no records: the demo needs only their offsets."""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from coordinator_core.assignors import Assignor, Cluster
from coordinator_core.client import ClusterClient, Connections, ConnectionSettings, MemberRunner
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.member import GroupMember, MemberSettings, MemberState
from coordinator_core.protocol import apis
from coordinator_core.protocol.offsets import (
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetToCommit,
)
from coordinator_core.service.net.addresses import ListenAddress
from pipelines.examples.demo.waiting import DemoError, WaitProgress, wait_for

SESSION_TIMEOUT_MS = 2_000
_HEARTBEAT_MS = 500
_REBALANCE_TIMEOUT_MS = 10_000
_READ_SECONDS = 0.1
_OBSERVE_EVERY_SECONDS = 0.02
#: The last version of OffsetCommit with a retention time.
_LAST_WITH_RETENTION = 4


class Members:
    """Members by name. A group's position in a partition grows while one of its members owns the partition, up to `ends`."""

    def __init__(
        self, server: ListenAddress, topics: dict[str, int], ends: Callable[[TopicPartition], int] = lambda _: sys.maxsize
    ) -> None:
        self._server = server
        self._ends = ends
        self._metadata = Cluster.of_counts(topics)
        self._cluster = ClusterClient((server,), ConnectionSettings())
        self._runners: dict[str, MemberRunner] = {}
        self._connections: dict[str, Connections] = {}
        self._read: Counter[tuple[str, TopicPartition]] = Counter()
        self._reading = asyncio.create_task(self._read_continuously())

    def join(self, name: str, group: str, topics: tuple[str, ...], assignor: Assignor, *, commits: bool = True) -> None:
        """Start a member, which joins `group`. With `commits` it commits automatically (`enable.auto.commit`)."""
        settings = MemberSettings(
            group,
            (assignor,),
            SESSION_TIMEOUT_MS,
            _REBALANCE_TIMEOUT_MS,
            _HEARTBEAT_MS,
            client_id=name,
            enable_auto_commit=commits,
            auto_commit_interval_ms=_HEARTBEAT_MS,
        )
        connections = self._connections[name] = Connections(ConnectionSettings(client_id=name))
        runner = self._runners[name] = MemberRunner(GroupMember(settings, topics, self._metadata), self._cluster, connections)
        runner.start()

    async def settled(self, *groups: str) -> None:
        """Wait until every partition of these groups has exactly one owner. Raises DemoError if their number stops growing."""

        async def observe() -> WaitProgress:
            return WaitProgress(all(map(self._is_settled, groups)), self._owned(groups), self._described(groups))

        await wait_for(f"the groups {', '.join(groups)} did not assign all partitions", observe, _OBSERVE_EVERY_SECONDS)

    async def leave(self, name: str) -> None:
        """Commit, send LeaveGroup and close the connections."""
        await self._runners.pop(name).leave()
        self._connections.pop(name).close()

    async def crash(self, name: str) -> None:
        """Close the connections without LeaveGroup."""
        await self._runners.pop(name).stop()
        self._connections.pop(name).close()

    async def commit_for(self, name: str, retention_ms: int) -> None:
        """Commit the positions of a member with a retention time, as clients up to 2.0 can."""
        member = self._runners[name].member
        offsets = {each: OffsetToCommit(self._read[member.settings.group_id, each]) for each in member.owned}
        request = replace(member.commit(offsets), retention_ms=retention_ms)
        connection = await self._connections[name].to(*self._server)
        response = await connection.request(apis.OFFSET_COMMIT, request, newest=_LAST_WITH_RETENTION)
        assert isinstance(response, OffsetCommitResponse)
        if any(response.errors.values()):
            raise DemoError(f"{name} could not commit: {', '.join(error.name for error in response.errors.values())}")

    async def leave_all(self) -> None:
        """Let every member leave, and stop consuming."""
        self._reading.cancel()
        await asyncio.gather(*map(self.leave, tuple(self._runners)), self._reading, return_exceptions=True)
        self._cluster.close()

    async def committed(self, group: str) -> dict[TopicPartition, int]:
        """Committed offsets of a group, from OffsetFetch."""
        connections = Connections(ConnectionSettings())
        try:
            response = await (await connections.to(*self._server)).request(apis.OFFSET_FETCH, OffsetFetchRequest(group))
        finally:
            connections.close()
        assert isinstance(response, OffsetFetchResponse)
        return {partition: fetched.offset for partition, fetched in response.offsets.items()}

    def _is_settled(self, group: str) -> bool:
        members = self._members((group,))
        wanted = sum(len(self._metadata.topics[topic]) for topic in set().union(*(member.topics for member in members)))
        owned = [partition for member in members for partition in member.owned]
        return all(member.state is MemberState.STABLE for member in members) and len(owned) == len(set(owned)) == wanted

    def _owned(self, groups: tuple[str, ...]) -> int:
        return sum(len(member.owned) for member in self._members(groups))

    def _described(self, groups: tuple[str, ...]) -> str:
        members = self._members(groups)
        return ", ".join(f"{each.settings.client_id} {each.state.name} owns {len(each.owned)}" for each in members)

    def _members(self, groups: tuple[str, ...]) -> list[GroupMember]:
        return [runner.member for runner in self._runners.values() if runner.member.settings.group_id in groups]

    async def _read_continuously(self) -> None:
        while True:
            await asyncio.sleep(_READ_SECONDS)
            for runner in self._runners.values():
                member = runner.member
                keys = {each: (member.settings.group_id, each) for each in member.owned}
                for each, key in keys.items():
                    self._read[key] = min(self._read[key] + 1 + each.partition, self._ends(each))
                member.consumed({each: OffsetToCommit(self._read[key]) for each, key in keys.items()})
