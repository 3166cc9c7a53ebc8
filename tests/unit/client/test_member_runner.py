"""A caller that sends a commit through a member gets its result, even if the member fails or leaves."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from eventually import equal_to, eventually_async
from patience import PATIENCE_SECONDS

from coordinator_core.assignors import Cluster
from coordinator_core.client import ClusterClient, ConnectionSettings, Disconnected, MemberRunner
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.member import GroupMember, MemberSettings
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import Node
from coordinator_core.protocol.offsets import OffsetCommitResponse, OffsetToCommit

PLACE = TopicPartition("orders", 0)
OFFSETS = {PLACE: OffsetToCommit(7)}
HERE = Node(0, "127.0.0.1", 9)


class Link:
    """A connection on which responses arrive when the test sends them."""

    def __init__(self) -> None:
        self.sent: list[asyncio.Future[Any]] = []

    def send(self, _api: Any, _parts: Any, _timeout_ms: int | None = None) -> "asyncio.Future[Any]":
        self.sent.append(asyncio.get_running_loop().create_future())
        return self.sent[-1]


class Links:
    """Returns a link, or never does."""

    settings = ConnectionSettings()

    def __init__(self, link: Link | None) -> None:
        self._link = link
        self.requested = 0

    async def to(self, _host: str, _port: int) -> Link:
        self.requested += 1
        if self._link is None:
            await asyncio.Event().wait()
        assert self._link is not None
        return self._link


def running(link: Link | None, links: Links | None = None) -> MemberRunner:
    member = GroupMember(MemberSettings("g"), ("orders",), Cluster.of_counts({"orders": 1}))
    runner = MemberRunner(member, ClusterClient([], ConnectionSettings()), links or Links(link))  # type: ignore[arg-type]  # stands for Connections
    member.coordinator = HERE
    runner.start()
    return runner


def in_async(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await test()

    asyncio.run(within())


def test_a_member_that_stops_while_it_connects() -> None:
    async def stopped() -> None:
        links = Links(None)
        runner = running(None, links)
        answer = runner.send(runner.member.commit(OFFSETS))
        await eventually_async("the member connects", lambda: links.requested, pause_seconds=0.001)
        await runner.stop()
        with pytest.raises(Disconnected, match="the member has stopped"):
            await answer

    in_async(stopped)


def test_an_answer_to_a_member_that_looks_for_its_coordinator_again() -> None:
    async def answered() -> None:
        link = Link()
        runner = running(link)
        first = runner.send(runner.member.commit(OFFSETS))
        # the member joins concurrently
        await eventually_async("both have sent their request", lambda: len(link.sent), equal_to(2), pause_seconds=0)
        second = runner.send(runner.member.commit(OFFSETS))
        runner.member.disconnected(0)
        with pytest.raises(Disconnected, match="no coordinator"):
            await second
        taken = OffsetCommitResponse({PLACE: ErrorCode.NONE})
        for sent in link.sent:
            sent.set_result((taken,))
        assert await first == taken
        await runner.stop()

    in_async(answered)
