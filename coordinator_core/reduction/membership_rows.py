"""Changes of members and owners as values of the columns of `MEMBERSHIP` and `OWNERSHIP`, after those of the position."""

from typing import Any

from coordinator_core.codec.uuids import uuid_text
from coordinator_core.reduction import schemas
from coordinator_core.state.membership import MembershipChange, OwnershipChange

MEMBERSHIP_COLUMNS = tuple(schemas.MEMBERSHIP.names[2:])
OWNERSHIP_COLUMNS = tuple(schemas.OWNERSHIP.names[2:])


def membership_values(change: MembershipChange) -> tuple[Any, ...]:
    """Values of MEMBERSHIP_COLUMNS; times in ms."""
    unknown = change.state_timestamp is None
    return change._replace(state_timestamp=-1) if unknown else change


def ownership_values(change: OwnershipChange) -> tuple[Any, ...]:
    """Values of OWNERSHIP_COLUMNS."""
    member, topic_id = change.member, change.topic_id
    return (
        change.group_id,
        change.generation,
        change.topic,
        None if topic_id is None else uuid_text(topic_id),
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        change.gained,
        change.lost,
    )
