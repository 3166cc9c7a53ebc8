"""Removal of a member whose process has ended from the group of nodes (LeaveGroup on behalf of it, as admin clients do)."""

from collections.abc import Mapping, Sequence

from kafka.protocol.consumer import LeaveGroupRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from coordinator_core.log.errors import LogError
from coordinator_core.sources.kafka_connection import borrowed_connection

_REASON = "the node has ended"


def remove_member(servers: Sequence[str], options: Mapping[str, str], group_id: str, member_id: str) -> None:
    """Remove a member. Raises LogError; a member that has left already is no error."""
    with borrowed_connection(servers, options) as connection:
        connection.metadata(())
        found = connection.send_any(lambda _: FindCoordinatorRequest(key=group_id, key_type=0, max_version=3))
        if isinstance(found, LogError):
            raise found
        leave = LeaveGroupRequest(
            group_id=group_id,
            members=[LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=None, reason=_REASON)],
            min_version=3,
        )
        answer = connection.send_all({found.node_id: lambda _: leave})[found.node_id]
        if isinstance(answer, LogError):
            raise answer
