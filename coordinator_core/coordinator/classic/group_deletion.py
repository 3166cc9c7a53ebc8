"""Deletion of a group: it is Dead until the log has its tombstones, then dropped (`GroupMetadataManager.removeGroup`)."""

from coordinator_core.codec import Record
from coordinator_core.coordinator import records
from coordinator_core.coordinator.classic.group import ClassicGroup
from coordinator_core.coordinator.classic.states import ClassicGroupState
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.group_events import GroupRemoved
from coordinator_core.coordinator.result import Continuation, ResultBuilder


def delete_group_records(
    result: ResultBuilder,
    group: ClassicGroup,
    tombstones: tuple[Record, ...],
    reason: str,
    then: Continuation,
) -> None:
    """Writes the tombstones of a group without members and pending member ids. If the log refuses them, it is Empty again."""
    context = result.context
    since = group.state_timestamp
    group.transition_to(ClassicGroupState.DEAD, result.now_ms)

    def written(error: ErrorCode, later: ResultBuilder) -> None:
        if error is ErrorCode.NONE:
            context.forget(group)
            offsets = sum(record.record_type == records.OFFSET_COMMIT for record in tombstones)
            later.emit(GroupRemoved(group.group_id, reason, offsets))
        elif context.groups.get(group.group_id) is group:
            group.revive(since)
        then(error, later)

    if tombstones:
        result.write(tombstones, written)
    else:
        written(ErrorCode.NONE, result)
