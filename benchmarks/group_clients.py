"""Members of groups that send only the measured requests, over connections of `coordinator_core.client`."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from coordinator_core.client import BrokerConnection, ConnectionSettings, connect
from coordinator_core.codec import encode_assignment, encode_subscription
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ProtocolTopicPartitions,
)
from coordinator_core.protocol import apis
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import FindCoordinatorRequest, FindCoordinatorResponse
from coordinator_core.protocol.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
)

HostPort = tuple[str, int]
_SETTINGS = ConnectionSettings(client_id="bench", request_timeout_ms=300_000, connect_timeout_ms=60_000)
_SESSION_MS = 60_000
_REBALANCE_MS = 120_000
_CONNECTING_AT_ONCE = 100
_FIND_LIMIT_SECONDS = 60
_ASSIGNOR = "range"


@dataclass(slots=True)
class Member:
    """A member and its connection; `member_id` and `generation` once it has joined."""

    group: str
    connection: BrokerConnection
    member_id: str = ""
    generation: int = -1


@dataclass(slots=True)
class Joined:
    """Seconds from the first JoinGroup request until the first successful response, and until every member had its
    assignment."""

    generation: float = 0.0
    assignments: float = 0.0


@dataclass(slots=True)
class Beats:
    """Number and latencies (seconds) of successful heartbeats, and the duration of the measurement."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """The latency that this share of all heartbeats did not exceed."""
        return sorted(self.latencies)[min(int(len(self.latencies) * share), len(self.latencies) - 1)]


async def connections_to(address: HostPort, count: int) -> list[BrokerConnection]:
    """This many connections, after ApiVersions."""
    made: list[BrokerConnection] = []
    while len(made) < count:
        some = min(_CONNECTING_AT_ONCE, count - len(made))
        made += await asyncio.gather(*(connect(*address, _SETTINGS) for _ in range(some)))
    return made


async def await_coordinator(connection: BrokerConnection, group: str) -> None:
    """Wait for the group's coordinator: a broker creates and loads its topic at the first request. Raises TimeoutError."""
    async with asyncio.timeout(_FIND_LIMIT_SECONDS):
        while True:
            found = await connection.request(apis.FIND_COORDINATOR, FindCoordinatorRequest((group,)))
            if cast(FindCoordinatorResponse, found).coordinators[0].error is ErrorCode.NONE:
                beat = await connection.request(apis.HEARTBEAT, HeartbeatRequest(group, 1, "unknown"))
                if cast(HeartbeatResponse, beat).error is ErrorCode.UNKNOWN_MEMBER_ID:
                    return
            await asyncio.sleep(0.1)


async def join_all(members: Sequence[Member], topic: str, round_number: int = 0) -> Joined:
    """Let all members of a group join at the same time, until they have their assignments; later rounds rejoin.

    Raises RuntimeError if the coordinator rejects a member.
    """
    subscription = encode_subscription(ConsumerProtocolSubscription((topic,), b"%d" % round_number))
    joined, started = Joined(), time.perf_counter()

    async def run(member: Member) -> None:
        response = await _join(member, subscription)
        joined.generation = joined.generation or time.perf_counter() - started
        member.generation = response.generation
        assignments = _assignments(response, topic) if response.leader == member.member_id else {}
        request = SyncGroupRequest(
            member.group, response.generation, member.member_id, None, response.protocol_type, response.protocol_name, assignments
        )
        synced = cast(SyncGroupResponse, await member.connection.request(apis.SYNC_GROUP, request))
        if synced.error is not ErrorCode.NONE or not synced.assignment:
            raise RuntimeError(f"SyncGroup of {member.member_id}: {synced.error.name}, {len(synced.assignment)} bytes")

    await asyncio.gather(*(run(member) for member in members))
    joined.assignments = time.perf_counter() - started
    if len({member.generation for member in members}) != 1:
        raise RuntimeError("the members have different generations")
    return joined


async def _join(member: Member, subscription: bytes) -> JoinGroupResponse:
    while True:
        request = JoinGroupRequest(
            member.group, member.member_id, "consumer", (Protocol(_ASSIGNOR, subscription),), _SESSION_MS, _REBALANCE_MS
        )
        response = cast(JoinGroupResponse, await member.connection.request(apis.JOIN_GROUP, request))
        member.member_id = response.member_id
        if response.error is ErrorCode.NONE:
            return response
        if response.error is not ErrorCode.MEMBER_ID_REQUIRED:
            raise RuntimeError(f"JoinGroup of {member.group}: {response.error.name}")


def _assignments(response: JoinGroupResponse, topic: str) -> dict[str, bytes]:
    return {
        member.member_id: encode_assignment(ConsumerProtocolAssignment((ProtocolTopicPartitions(topic, (number,)),)))
        for number, member in enumerate(response.members)
    }


async def beat(members: Sequence[Member], interval: float, seconds: float) -> Beats:
    """Let members send a heartbeat per `interval`, spread evenly, for `seconds`. Raises RuntimeError if one is rejected."""
    loop, beats, refused = asyncio.get_running_loop(), Beats(), set[str]()
    open_requests = 0
    started = loop.time()
    sent = 0

    def send(member: Member) -> None:
        nonlocal open_requests
        begun = time.perf_counter()
        open_requests += 1

        def answered(answer: "asyncio.Future[Any]") -> None:
            nonlocal open_requests
            open_requests -= 1
            error = cast(HeartbeatResponse, answer.result()[0]).error
            if error is ErrorCode.NONE:
                beats.latencies.append(time.perf_counter() - begun)
            else:
                refused.add(error.name)

        request = HeartbeatRequest(member.group, member.generation, member.member_id)
        member.connection.send(apis.HEARTBEAT, (request,)).add_done_callback(answered)

    while (now := loop.time() - started) < seconds:
        due = int(now / interval * len(members))
        while sent < due:
            send(members[sent % len(members)])
            sent += 1
        await asyncio.sleep(0.001)
    while open_requests:
        await asyncio.sleep(0.001)
    beats.seconds = loop.time() - started
    if refused:
        raise RuntimeError(f"heartbeats were rejected with {', '.join(sorted(refused))}")
    return beats
