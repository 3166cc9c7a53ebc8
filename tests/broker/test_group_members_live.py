"""Our members in groups of a real broker: alone, with a third-party client, and as a crowd."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest
from confluent_kafka import Consumer
from eventually import equal_to, eventually_async
from live_kafka import create_topic
from patience import PATIENCE_SECONDS

from coordinator_core.assignors import Assignor, CooperativeStickyAssignor, RangeAssignor
from coordinator_core.client import ClusterClient, Connections, ConnectionSettings, Crowd, CrowdSettings, MemberRunner
from coordinator_core.client.group_client import Server
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.member import GroupMember, MemberSettings, MemberState
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import OffsetToCommit
from pipelines.examples.private.kafka.broker import PrivateBroker

pytestmark = pytest.mark.broker

PARTITIONS = 6
#: Longer than the session of a member that has not left the group at the broker.
_SESSION_MS = 45_000


def address_of(broker: PrivateBroker) -> Server:
    host, port = broker.bootstrap.split(":")
    return host, int(port)


async def until_shared(runners: Sequence[MemberRunner]) -> None:
    await eventually_async(
        "the members share the partitions",
        lambda: shared(runners) or [described(runner.member) for runner in runners],
        lambda found: found is True,
    )


def described(member: GroupMember) -> str:
    partitions = {topic: len(found) for topic, found in member.metadata.topics.items()}
    return f"{member.member_id}: {member.state}, generation {member.generation}, owns {member.owned} of {partitions}"


async def started(
    stack: AsyncExitStack, broker: PrivateBroker, group: str, topic: str, assignors: Sequence[Assignor]
) -> MemberRunner:
    settings = ConnectionSettings(client_id="ours")
    cluster, connections = ClusterClient([address_of(broker)], settings), Connections(settings)
    stack.callback(cluster.close)
    stack.callback(connections.close)
    member = GroupMember(
        MemberSettings(group, tuple(assignors), session_timeout_ms=_SESSION_MS, heartbeat_interval_ms=200),
        (topic,),
        await cluster.metadata([topic]),
    )
    runner = MemberRunner(member, cluster, connections)
    stack.push_async_callback(runner.stop)
    runner.start()
    return runner


def in_async(test: Callable[[AsyncExitStack], Awaitable[None]]) -> None:
    async def run() -> None:
        async with AsyncExitStack() as stack:
            await test(stack)

    asyncio.run(run())


def shared(runners: Sequence[MemberRunner]) -> bool:
    owned = [partition for runner in runners for partition in runner.member.owned]
    return (
        len(set(owned)) == len(owned) == PARTITIONS
        and all(runner.member.owned for runner in runners)
        and all(runner.member.state is MemberState.STABLE for runner in runners)
        and len({runner.member.generation for runner in runners}) == 1
    )


@pytest.mark.parametrize("assignor", [RangeAssignor(), CooperativeStickyAssignor()], ids=lambda each: each.name)
def test_join_commit_fetch_leave(broker: PrivateBroker, topic: str, assignor: Assignor) -> None:
    create_topic(broker.bootstrap, topic, PARTITIONS)
    group = f"group-{uuid4().hex[:8]}"

    async def members(stack: AsyncExitStack) -> None:
        runners = [await started(stack, broker, group, topic, [assignor]) for _ in range(3)]
        await until_shared(runners)
        for number, runner in enumerate(runners):
            offsets = {at: OffsetToCommit(100 * number + at.partition, metadata=f"of {number}") for at in runner.member.owned}
            committed = await runner.commit(offsets)
            assert committed.errors == dict.fromkeys(offsets, ErrorCode.NONE)
            fetched = await runner.fetch(runner.member.owned)
            assert fetched.error is ErrorCode.NONE
            assert {at: (each.offset, each.metadata) for at, each in fetched.offsets.items()} == {
                at: (each.offset, each.metadata) for at, each in offsets.items()
            }
        first, *others = runners
        await first.leave()
        await until_shared(others)
        everything = await others[0].fetch(None)
        assert set(everything.offsets) == {TopicPartition(topic, number) for number in range(PARTITIONS)}
        for runner in others:
            await runner.leave()

    in_async(members)


def test_a_member_beside_a_client_of_another_kind(broker: PrivateBroker, topic: str) -> None:
    create_topic(broker.bootstrap, topic, PARTITIONS)
    group = f"group-{uuid4().hex[:8]}"
    theirs = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group, "partition.assignment.strategy": "range",
         "heartbeat.interval.ms": 200, "session.timeout.ms": 45_000}
    )  # fmt: skip
    theirs.subscribe([topic])

    async def members(stack: AsyncExitStack) -> None:
        stack.callback(theirs.close)
        ours = await started(stack, broker, group, topic, [RangeAssignor()])

        async def poll() -> None:
            while True:
                await asyncio.to_thread(theirs.poll, 0.05)

        polling = asyncio.create_task(poll())
        try:
            await eventually_async(
                "each of both has half of the partitions",
                lambda: (len(ours.member.owned), len(theirs.assignment())),
                equal_to((PARTITIONS // 2, PARTITIONS // 2)),
            )
            everything = {(each.topic, each.partition) for each in theirs.assignment()} | set(ours.member.owned)
            assert everything == {(topic, number) for number in range(PARTITIONS)}
            await ours.leave()
            await eventually_async(
                "they have every partition",
                lambda: len(theirs.assignment()),
                equal_to(PARTITIONS),
            )
        finally:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)

    in_async(members)


@pytest.mark.long
def test_a_crowd(broker: PrivateBroker, topic: str) -> None:
    create_topic(broker.bootstrap, topic, PARTITIONS)
    settings = CrowdSettings(
        groups=4, members=12, topics=(topic,), partitions=None, ramp_ms=500, duration_ms=3_000, pause_ms=20, leaves=30,
        crashes=30, session_timeout_ms=6_000, heartbeat_interval_ms=200, prefix=f"crowd-{uuid4().hex[:8]}",
    )  # fmt: skip

    async def crowd(stack: AsyncExitStack) -> None:
        made = Crowd([address_of(broker)], settings)
        stack.push_async_callback(made.close)
        await made.run()
        assert await made.settle(int(PATIENCE_SECONDS * 1000)), made.counts
        assert made.failures == []
        assert made.counts["commit NONE"] > 0
        by_group: dict[str, dict[TopicPartition, int]] = {}
        for (group, partition), offset in made.acknowledged.items():
            by_group.setdefault(group, {})[partition] = offset
        for number, runner in made.runners.items():
            acknowledged = by_group.get(settings.group_of(number), {})
            fetched = await runner.fetch(tuple(acknowledged))
            assert all(fetched.offsets[at].offset >= offset for at, offset in acknowledged.items())
        await made.leave()

    in_async(crowd)
