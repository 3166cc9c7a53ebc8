"""A member of a classic group that is driven by a test: it sends a request when a test calls for it, in versions of some age."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from eventually import eventually
from kafka.protocol.consumer.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from protocol_connection import ProtocolConnection

NONE = 0
REBALANCE_IN_PROGRESS = 27
MEMBER_ID_REQUIRED = 79
_NO_ID = UUID(int=0)
_BATCH_LEAVE = 3


@dataclass(frozen=True)
class Age:
    """Versions of the requests that a client of some age sends."""

    join: int
    sync: int
    heartbeat: int
    leave: int
    commit: int


#: Before member ids were required first (KIP-394): LeaveGroup for one member, and commits with a retention time.
OLD = Age(join=2, sync=1, heartbeat=1, leave=1, commit=2)
#: The first versions with static members; SyncGroup does not carry the protocol.
STATIC = Age(join=5, sync=3, heartbeat=3, leave=3, commit=7)
NEW = Age(join=9, sync=5, heartbeat=4, leave=5, commit=9)


class ProtocolMember:
    """A member to use in a `with`, which closes the connection and sends no LeaveGroup.

    Assertions fail when a response has an error that the test did not expect.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        client_id: str,
        protocols: Mapping[str, bytes],
        *,
        protocol_type: str = "consumer",
        age: Age = NEW,
        instance_id: str | None = None,
        session_ms: int = 60_000,
        rebalance_ms: int = 60_000,
        topic_ids: Mapping[str, UUID] | None = None,
    ) -> None:
        self.group = group
        self.member_id = ""
        self.generation = -1
        self.leads = False
        self.age = age
        self.instance_id = instance_id
        self.protocols = dict(protocols)
        self.rebalance_ms = rebalance_ms
        self._protocol_type = protocol_type
        self._protocol: str | None = None
        self._session_ms = session_ms
        self._topic_ids = dict(topic_ids or {})
        self._connection = ProtocolConnection(bootstrap, client_id)

    def __enter__(self) -> "ProtocolMember":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    # ---- joining

    def send_join(self) -> None:
        """Send JoinGroup without waiting; in versions that require a member id, a new member requests one first."""
        self._send_join()
        if self.age.join >= 4 and self.member_id == "" and self.instance_id is None:
            refused = self._connection.receive(JoinGroupResponse, self.age.join)
            assert refused.error_code == MEMBER_ID_REQUIRED, refused
            self.member_id = refused.member_id
            self._send_join()

    def receive_join(self) -> Any:
        answer = self._connection.receive(JoinGroupResponse, self.age.join)
        assert answer.error_code == NONE, answer
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self.leads = answer.leader == answer.member_id
        self._protocol = answer.protocol_name
        return answer

    def join(self) -> Any:
        self.send_join()
        return self.receive_join()

    def _send_join(self) -> None:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self._protocol_type,
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=n, metadata=m) for n, m in self.protocols.items()],
            reason=None,
        )
        self._connection.send(request, self.age.join)

    def send_sync(self, assignments: Mapping[str, bytes] | None = None) -> None:
        """Send SyncGroup without waiting; `assignments` by member id, from a leader."""
        given = [
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=assignment)
            for member, assignment in (assignments or {}).items()
        ]
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self._protocol_type,
            protocol_name=self._protocol,
            assignments=given,
        )
        self._connection.send(request, self.age.sync)

    def receive_sync(self) -> bytes:
        answer = self._connection.receive(SyncGroupResponse, self.age.sync)
        assert answer.error_code == NONE, answer
        return bytes(answer.assignment)

    def sync(self, assignments: Mapping[str, bytes] | None = None) -> bytes:
        self.send_sync(assignments)
        return self.receive_sync()

    # ---- requests of a member

    def heartbeat(self) -> int:
        """The error of one heartbeat."""
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id, group_instance_id=self.instance_id
        )
        return int(self._connection.request(request, HeartbeatResponse, self.age.heartbeat).error_code)

    def await_rebalance(self) -> None:
        """Send heartbeats until one reports that the group rebalances."""
        other_than_none = eventually(f"{self.group} rebalances", self.heartbeat, lambda error: error != NONE)
        assert other_than_none == REBALANCE_IN_PROGRESS

    def commit(
        self,
        offsets: Iterable[tuple[str, int, int, int, str | None]],
        *,
        retention_ms: int = -1,
    ) -> dict[tuple[str, int], int]:
        """Commit (topic, partition, offset, leader epoch, metadata) as this member; return errors by partition."""
        topics: dict[str, list[Any]] = {}
        topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
        for topic, partition, offset, leader_epoch, metadata in offsets:
            topics.setdefault(topic, []).append(
                topic_class.OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=leader_epoch,
                    committed_metadata=metadata,
                )
            )
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            retention_time_ms=retention_ms,
            topics=[
                topic_class(name=name, topic_id=self._topic_ids.get(name, _NO_ID), partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        answer = self._connection.request(request, OffsetCommitResponse, self.age.commit)
        return {
            (topic.topic_id or topic.name, each.partition_index): each.error_code
            for topic in answer.topics
            for each in topic.partitions
        }

    def leave(self, *others: "ProtocolMember") -> list[int]:
        """LeaveGroup for this member and, from v3 on, for others; return their errors."""
        identity = LeaveGroupRequest.MemberIdentity
        members = [
            identity(member_id=each.member_id, group_instance_id=each.instance_id, reason=None) for each in (self, *others)
        ]
        request = LeaveGroupRequest(group_id=self.group, member_id=self.member_id, members=members)
        answer = self._connection.request(request, LeaveGroupResponse, self.age.leave)
        assert answer.error_code == NONE, answer
        return [each.error_code for each in answer.members] if self.age.leave >= _BATCH_LEAVE else [answer.error_code]


def finish_rebalance(members: Sequence[ProtocolMember], assignments: Sequence[bytes | None]) -> None:
    """Complete a rebalance in which all members have sent JoinGroup.

    The leader assigns to each member in their order; its request leaves out members whose assignment is None.
    """
    for member in members:
        member.receive_join()
    given = {m.member_id: data for m, data in zip(members, assignments, strict=True) if data is not None}
    for member in sorted(members, key=lambda member: not member.leads):
        expected = assignments[members.index(member)] or b""
        assert member.sync(given if member.leads else None) == expected
