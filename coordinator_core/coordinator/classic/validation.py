"""Checks of member ids, instance ids and generations (`validateMember`, `validateCurrentMember`)."""

from coordinator_core.coordinator.classic.group import ClassicGroup
from coordinator_core.coordinator.errors import ErrorCode


def validate_member(group: ClassicGroup, member_id: str, group_instance_id: str | None) -> ErrorCode:
    """Returns NONE for a known member. An instance that has another member id now is fenced (KIP-345)."""
    if group_instance_id is not None:
        current = group.static_member_id(group_instance_id)
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if current != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in group else ErrorCode.UNKNOWN_MEMBER_ID


def validate_generation(group: ClassicGroup, member_id: str, group_instance_id: str | None, generation: int) -> ErrorCode:
    """Checks the member as `validate_member`, then the generation."""
    error = validate_member(group, member_id, group_instance_id)
    if error is ErrorCode.NONE and generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error
