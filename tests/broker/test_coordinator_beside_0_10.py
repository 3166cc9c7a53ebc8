"""One story sent to the coordinator of an era and to a broker of that time: the same answers except for member ids."""

import re
import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from client_codecs import read_response, write_request
from coordinator_harness import Call, Harness
from patience import PATIENCE_SECONDS

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.groups import DescribeGroupRequest, ListGroupsRequest
from coordinator_core.protocol.membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeavingMember,
    Protocol,
    SyncGroupRequest,
)
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetFetchRequest, OffsetToCommit
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients

pytestmark = [pytest.mark.broker, pytest.mark.slow]

GROUP, SIMPLE, MISSING, WARM_UP = "story", "simple", "missing", "warm-up"
TOPIC = "read"
T0, T1 = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
SESSION_MS = 30_000
VERSIONS: Mapping[type, tuple[AnyApi, int]] = {
    JoinGroupRequest: (apis.JOIN_GROUP, 1),
    SyncGroupRequest: (apis.SYNC_GROUP, 0),
    HeartbeatRequest: (apis.HEARTBEAT, 0),
    LeaveGroupRequest: (apis.LEAVE_GROUP, 0),
    OffsetCommitRequest: (apis.OFFSET_COMMIT, 2),
    OffsetFetchRequest: (apis.OFFSET_FETCH, 2),
    DescribeGroupRequest: (apis.DESCRIBE_GROUPS, 0),
    ListGroupsRequest: (apis.LIST_GROUPS, 0),
}
MEMBER_ID = re.compile(r"client(?:Id)?-[0-9a-f-]+")


class Broker:
    """Sends each request on a connection of its own, so that no request waits for a parked one."""

    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.split(":")
        self._address = (host, int(port))
        self._open: list[socket.socket] = []

    def send(self, request: Any) -> Callable[[], Any]:
        api, version = VERSIONS[type(request)]
        connection = socket.create_connection(self._address, timeout=PATIENCE_SECONDS)
        self._open.append(connection)
        frame = write_request(api, version, (request,), 7, "client")
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        time.sleep(0.05)

        def answer() -> Any:
            (length,) = struct.unpack(">i", self._read(connection, 4))
            return read_response(api, version, self._read(connection, length)).parts[0]

        return answer

    @staticmethod
    def _read(connection: socket.socket, length: int) -> bytes:
        data = b""
        while len(data) < length:
            got = connection.recv(length - len(data))
            assert got, "the broker closed the connection"
            data += got
        return data

    def close(self) -> None:
        for connection in self._open:
            connection.close()


class Ours:
    def __init__(self, era: str) -> None:
        self.at = Harness(era, group_min_session_timeout_ms=6_000, group_max_session_timeout_ms=300_000)
        for partition in range(2):
            if partition != self.at.partition:
                self.at.lead(partition)

    def send(self, request: Any) -> Callable[[], Any]:
        if isinstance(request, ListGroupsRequest):
            calls = [self.at.send(request, partition) for partition in range(2)]
            groups = tuple(group for call in calls for group in call.response.groups)
            return lambda: replace(calls[0].response, groups=groups)
        call: Call = self.at.send(request)
        return lambda: call.response


def answers_to_story(side: Any) -> list[str]:
    """The answers to the story, as text, with the member ids by the order of their first appearance."""
    answers: list[Any] = []

    def send(request: Any) -> Any:
        answers.append(side.send(request)())
        return answers[-1]

    def join(member_id: str = "", metadata: bytes = b"s", **more: Any) -> Callable[[], Any]:
        protocols = (Protocol("range", metadata), Protocol("roundrobin", metadata))
        fields: dict[str, Any] = {"group_id": GROUP, "protocol_type": "consumer", "session_timeout_ms": SESSION_MS} | more
        request = JoinGroupRequest(
            member_id=member_id,
            protocols=protocols,
            rebalance_timeout_ms=SESSION_MS,
            client_id="client",
            client_host="/127.0.0.1",
            require_known_member_id=False,
            supports_skipping_assignment=False,
            **fields,
        )
        answer: Callable[[], Any] = side.send(request)
        return answer

    def commit(member_id: str, generation: int, group: str = GROUP, retention_ms: int = -1) -> Any:
        offsets = {T0: OffsetToCommit(5, metadata="m"), T1: OffsetToCommit(6)}
        return send(OffsetCommitRequest(group, offsets, member_id, generation, None, retention_ms))

    def beat(member_id: str, generation: int, group: str = GROUP) -> Any:
        return send(HeartbeatRequest(group, generation, member_id))

    def sync(member_id: str, generation: int, assignments: dict[str, bytes] | None = None) -> Callable[[], Any]:
        answer: Callable[[], Any] = side.send(SyncGroupRequest(GROUP, generation, member_id, assignments=assignments or {}))
        return answer

    def describe(group: str = GROUP) -> None:
        answers.append(side.send(DescribeGroupRequest(group))())

    # a group of one, before its leader assigns
    answers.append(join()())
    a = answers[-1].member_id
    for member_id, generation in ((a, 1), (a, 7), ("unknown", 1)):
        beat(member_id, generation)
    commit("unknown", 1)
    commit(a, 1)
    describe()
    answers.append(join(a)())
    answers.append(sync("unknown", 1)())
    answers.append(sync(a, 7)())
    answers.append(sync(a, 1, {a: b"all"})())
    # Stable
    describe()
    for member_id, generation in ((a, 1), (a, 7), ("unknown", 1)):
        beat(member_id, generation)
        commit(member_id, generation, retention_ms=100_000)
    commit("", -1)
    answers.append(sync(a, 1)())
    send(OffsetFetchRequest(GROUP, (T0, TopicPartition(TOPIC, 3))))
    send(OffsetFetchRequest(GROUP))
    # a second member: both join, both sync
    second = join(metadata=b"t")
    describe()
    beat(a, 1)
    commit(a, 1)
    answers.append(sync(a, 1)())
    first = join(a)
    answers.extend((first(), second()))
    b = answers[-1].member_id
    waiting = sync(b, 2)
    answers.append(sync(a, 2, {a: b"half"})())
    answers.append(waiting())
    describe()
    # a follower with nothing new, one with another subscription, another protocol type
    answers.append(join(b, metadata=b"t")())
    answers.append(join(protocol_type="connect")())
    changed = join(b, metadata=b"u")
    answers.append(join(a)())
    answers.append(changed())
    # a follower whose SyncGroup is parked when the leader leaves
    waiting = sync(b, 3)
    send(LeaveGroupRequest(GROUP, (LeavingMember(a),)))
    answers.append(waiting())
    send(LeaveGroupRequest(GROUP, (LeavingMember(a),)))
    answers.append(join(b, metadata=b"u")())
    # no members are left
    send(LeaveGroupRequest(GROUP, (LeavingMember(b),)))
    describe()
    beat(b, 4)
    answers.append(sync(b, 4)())
    answers.append(join(b)())
    commit(b, 4)
    commit("", -1)
    # rejected requests, and groups that do not exist
    answers.append(join(session_timeout_ms=5_999)())
    answers.append(join(session_timeout_ms=300_001)())
    answers.append(join(group_id="")())
    beat(a, 1, MISSING)
    describe(MISSING)
    commit("unknown", 1, MISSING)
    send(LeaveGroupRequest(MISSING, (LeavingMember("unknown"),)))
    send(OffsetFetchRequest(MISSING, (T0,)))
    send(OffsetFetchRequest(MISSING))
    commit("", -1, SIMPLE)
    describe(SIMPLE)
    answers.append(join()())
    listed = send(ListGroupsRequest())
    answers[-1] = sorted((group.group_id, group.protocol_type) for group in listed.groups if group.group_id != WARM_UP)
    return normalized(answers)


def normalized(answers: list[Any]) -> list[str]:
    names: dict[str, str] = {}
    lines = []
    for answer in answers:
        if hasattr(answer, "offsets"):
            answer = replace(answer, offsets=dict(sorted(answer.offsets.items())))
        if hasattr(answer, "members") and not hasattr(answer, "error_of_single"):
            # brokers list members in the order of a hash map; a member without a name comes last
            by_name = sorted(answer.members, key=lambda member: (member.metadata, names.get(member.member_id, "member ~")))
            answer = replace(answer, members=tuple(by_name))
        if hasattr(answer, "state"):
            answer = replace(answer, state=str(answer.state))
        if hasattr(answer, "error_of_single"):
            answer = answer.error_of_single
        if hasattr(answer, "generation"):
            # versions before 7 return no protocol type, and errors contain none either
            answer = replace(answer, protocol_type=None, protocol_name=answer.protocol_name or None)
        if hasattr(answer, "assignment"):
            answer = replace(answer, protocol_type=None, protocol_name=None)
        lines.append(MEMBER_ID.sub(lambda found: names.setdefault(found[0], f"member {len(names)}"), str(answer)))
    return lines


def test_a_broker_of_0_10_2_and_the_coordinator_of_its_era() -> None:
    with PrivateBroker("0.10.2.2", offsets_partitions=2) as running:
        with Clients(running.bootstrap) as clients:
            clients.create_topics([TOPIC], 4)
            clients.produce(TOPIC, 4, 1)
            member = clients.consumer(WARM_UP, [TOPIC])
            clients.settle([member], 4)
            clients.leave(member)
        broker = Broker(running.bootstrap)
        try:
            theirs = answers_to_story(broker)
        finally:
            broker.close()
    ours = answers_to_story(Ours("0.10"))
    assert ours == theirs
