"""Requests about the group of the nodes: its members, their partitions, and removal of a member that has ended.

Not librdkafka's admin client: it aborts the process (an assertion in `rd_kafka_enq_once_del_source_return`) if it finds the
coordinator of a group after the request has timed out, as it does when brokers come back from an outage.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import kafka.errors
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import LeaveGroupRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from coordinator_core.codec import Malformed, NoAssignment, decode_assignment
from coordinator_core.log.errors import LogError, LogUnreachable
from coordinator_core.sources.kafka_connection import KafkaConnection, borrowed_connection

#: The state of a group in which every member knows its partitions.
STABLE = "Stable"
_GROUP = 0
_REASON = "the node has ended"


class AssignedMember(NamedTuple):
    """A member, and the numbers of the partitions that it was assigned: the members of the group read one topic."""

    member_id: str
    client_id: str
    partitions: tuple[int, ...]


class DescribedGroup(NamedTuple):
    """A classic group; one that does not exist is "Dead" and has no members."""

    state: str
    members: tuple[AssignedMember, ...]


class GroupRequests:
    """Requests to the coordinator of a group in the cluster at `servers`. Methods raise LogError; most are worth a retry."""

    def __init__(self, servers: Sequence[str], options: Mapping[str, str]) -> None:
        self._servers = tuple(servers)
        self._options = dict(options)

    def describe(self, group_id: str) -> DescribedGroup:
        """Describe a classic group. Members whose assignment cannot be read have no partitions."""
        # version 6 has an error for a group that does not exist (KIP-1043), earlier ones a state
        request = DescribeGroupsRequest(groups=[group_id], include_authorized_operations=False, max_version=5)
        (group,) = self._ask_coordinator(group_id, request).groups
        _expect_no_error(group_id, group.error_code)
        members = tuple(
            AssignedMember(each.member_id, each.client_id, _partitions(bytes(each.member_assignment))) for each in group.members
        )
        return DescribedGroup(group.group_state, members)

    def remove_member(self, group_id: str, member_id: str) -> None:
        """Remove a member, as admin clients do (LeaveGroup on behalf of it). One that has left already is accepted."""
        member = LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=None, reason=_REASON)
        self._ask_coordinator(group_id, LeaveGroupRequest(group_id=group_id, members=[member], min_version=3))

    def _ask_coordinator(self, group_id: str, request: Any) -> Any:
        with borrowed_connection(self._servers, self._options) as connection:
            node = _coordinator(connection, group_id)
            answer = connection.send_all({node: lambda _: request})[node]
            if isinstance(answer, LogError):
                raise answer
            return answer


def _coordinator(connection: KafkaConnection, group_id: str) -> int:
    connection.metadata(())
    found = connection.send_any(lambda _: FindCoordinatorRequest(key=group_id, key_type=_GROUP, max_version=3))
    if isinstance(found, LogError):
        raise found
    _expect_no_error(group_id, found.error_code)
    return int(found.node_id)


def _expect_no_error(group_id: str, code: int) -> None:
    if code:
        raise LogUnreachable(f"group {group_id}: {kafka.errors.for_code(code).__name__}")


def _partitions(assignment: bytes) -> tuple[int, ...]:
    found = decode_assignment(assignment)
    if isinstance(found, Malformed | NoAssignment):
        return ()
    return tuple(number for topic in found.assigned_partitions for number in topic.partitions)
