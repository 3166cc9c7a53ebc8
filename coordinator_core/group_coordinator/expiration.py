"""The sweep of expired offsets, and of groups without offsets (`cleanupGroupMetadata`)."""

from collections.abc import Mapping

from coordinator_core.codec import Record, decode
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator import records
from coordinator_core.group_coordinator.classic.group_deletion import remove_group
from coordinator_core.group_coordinator.context import CoordinatorContext
from coordinator_core.group_coordinator.group.states import DEAD, EMPTY
from coordinator_core.group_coordinator.group_events import GroupRemoved, OffsetsExpired
from coordinator_core.group_coordinator.result import Continuation, ResultBuilder
from coordinator_core.group_coordinator.timers import ExpirationTimeout, TimerKey, TimerKind
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.state.expiry import ExpiringGroup, SweptGroup, sweep_group
from coordinator_core.state.offsets import CommittedOffset


def sweep(result: ResultBuilder) -> None:
    """Removes the offsets that have expired by the era's rules, and Empty groups without offsets."""
    context = result.context
    views = context.state.groups()
    for group_id in sorted(views.keys() | context.groups.keys() | _hidden_from_views(context)):
        group = context.groups.get(group_id)
        expiring: ExpiringGroup | None = views.get(group_id) if group is None else group
        if group is not None and group.is_in(DEAD):
            continue
        swept = _swept(context, result.now_ms, group_id, expiring)
        tombstones = tuple(record for key, _ in swept.tombstones if isinstance(record := decode(key, None), Record))
        if group is not None and group.is_in(EMPTY) and not context.config.rules.empty_state:
            remove_group(result, group, (*tombstones, records.group_tombstone(group_id)), "empty", _ignore_error)
        elif swept.group_removed and (group := context.find(group_id)) is not None:
            remove_group(result, group, tombstones, "expired", _ignore_error)
        elif tombstones:
            result.write(tombstones, _emit_when_written(swept))


def schedule_sweep(context: CoordinatorContext, now_ms: int) -> None:
    """Schedules the next sweep, one interval from now."""
    deadline = now_ms + context.config.offsets_retention_check_interval_ms
    context.timers.schedule(TimerKey(TimerKind.SWEEP), deadline, ExpirationTimeout())


def _swept(context: CoordinatorContext, now_ms: int, group_id: str, expiring: ExpiringGroup | None) -> SweptGroup:
    in_flight = context.in_flight.of(group_id)
    offsets: Mapping[TopicPartition, CommittedOffset] = {
        partition: offset for partition, offset in context.state.committed(group_id).items() if partition not in in_flight
    }
    known = context.state.registry.groups.get(group_id)
    return sweep_group(
        context.config.rules,
        context.config.offsets_retention_ms,
        now_ms,
        group_id,
        expiring,
        offsets,
        context.state.pending(group_id).keys() | in_flight,
        () if known is None else known.records.keys(),
    )


def _hidden_from_views(context: CoordinatorContext) -> frozenset[str]:
    rules = context.config.rules
    return frozenset() if rules.hides_offsets_without_group else context.state.offsets.groups_with_commits()


def _emit_when_written(swept: SweptGroup) -> Continuation:
    def written(error: ErrorCode, later: ResultBuilder) -> None:
        if error is ErrorCode.NONE and swept.group_removed:
            later.emit(GroupRemoved(swept.group_id, "expired", len(swept.offsets)))
        elif error is ErrorCode.NONE:
            later.emit(OffsetsExpired(swept.group_id, len(swept.offsets)))

    return written


def _ignore_error(_error: ErrorCode, _result: ResultBuilder) -> None:
    """The next sweep tries again to write tombstones that the log refused."""
