"""The coordinator of one log partition (`GroupCoordinatorShard`): requests in, responses and records out.

No call blocks or reads a clock. The owner of a shard serializes its calls, hands `Write`s to the log in their order, reports the
result of each (`appended`, `append_failed`, also in order), and calls `timers_due` when `next_deadline` has passed. A response is
returned only when the log has all records that it depends on.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar, assert_never

from coordinator_core.codec import decode
from coordinator_core.coordinator_common.results import STATUS_ERRORS, ReplyHandle, ShardStatus
from coordinator_core.group_coordinator import describe, expiration
from coordinator_core.group_coordinator.behaviour import SizeRule
from coordinator_core.group_coordinator.classic import rebalance
from coordinator_core.group_coordinator.classic.group_deletion import delete_group
from coordinator_core.group_coordinator.classic.heartbeat import heartbeat
from coordinator_core.group_coordinator.classic.join import join_group
from coordinator_core.group_coordinator.classic.leave import leave_group
from coordinator_core.group_coordinator.classic.sync import sync_group
from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.group_coordinator.context import CoordinatorContext, MemberIds
from coordinator_core.group_coordinator.group.states import DEAD
from coordinator_core.group_coordinator.offsets.commit import commit_offsets, commit_transactional_offsets, end_transaction
from coordinator_core.group_coordinator.offsets.delete import delete_offsets, topics_deleted
from coordinator_core.group_coordinator.offsets.fetch import fetch_offsets
from coordinator_core.group_coordinator.request_checks import check_status, error_response
from coordinator_core.group_coordinator.result import Continuation, CoordinatorResult, ResultBuilder, Write
from coordinator_core.group_coordinator.timers import ExpirationTimeout, GroupTimeout, HeartbeatTimeout, JoinTimeout, SyncTimeout
from coordinator_core.log.columns import RecordColumns
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.record_batch import control_key
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import CoordinatorApi, CoordinatorRequest, Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.reduction.bulk_load import load_columns
from coordinator_core.state.anomaly import Anomaly
from coordinator_core.state.group_state import GroupState

RequestT = TypeVar("RequestT", bound=CoordinatorRequest)
ResponseT = TypeVar("ResponseT", bound=Response)


def _handler(
    api: CoordinatorApi[RequestT, ResponseT], handle: Callable[[ResultBuilder, RequestT, ReplyHandle], None]
) -> tuple[type[CoordinatorRequest], Callable[..., None]]:
    """Returns an entry of the table; the signature checks that the handler takes the API's requests."""
    return api.request, handle


#: Handlers of requests that pass `check_status`, by the type of the request.
HANDLERS = dict(
    (
        _handler(apis.JOIN_GROUP, join_group),
        _handler(apis.SYNC_GROUP, sync_group),
        _handler(apis.HEARTBEAT, heartbeat),
        _handler(apis.LEAVE_GROUP, leave_group),
        _handler(apis.OFFSET_COMMIT, commit_offsets),
        _handler(apis.TXN_OFFSET_COMMIT, commit_transactional_offsets),
        _handler(apis.WRITE_TXN_MARKERS, end_transaction),
        _handler(apis.OFFSET_FETCH, fetch_offsets),
        _handler(apis.OFFSET_DELETE, delete_offsets),
        _handler(apis.DESCRIBE_GROUPS, describe.describe_group),
        _handler(apis.CONSUMER_GROUP_DESCRIBE, describe.describe_consumer_group),
        _handler(apis.LIST_GROUPS, describe.list_groups),
        _handler(apis.DELETE_GROUPS, delete_group),
    )
)


class GroupCoordinatorShard:
    """Coordinator of one log partition, initially not loaded. `new_member_id` generates ids from client or instance ids."""

    def __init__(self, partition: int, config: CoordinatorConfig, new_member_id: MemberIds) -> None:
        self.partition = partition
        self.config = config
        self.status = ShardStatus.UNLOADED
        self.epoch = -1
        self._new_member_id = new_member_id
        self._context = self._new_context(0)
        self._writes: dict[int, Write] = {}
        self._waiting: dict[int, list[Continuation]] = {}
        self._write_number = 0

    @property
    def context(self) -> CoordinatorContext:
        """State of groups and offsets, read-only for callers."""
        return self._context

    # ---- immigration and emigration

    def begin_load(self, epoch: int, now_ms: int) -> bool:
        """Starts the load of the partition for a leader epoch; returns False, without effect, for a stale one (KAFKA-5600).

        Until `finish_load`, the owner passes the log's records to `replay`, and requests get COORDINATOR_LOAD_IN_PROGRESS.
        """
        if epoch <= self.epoch or self.status is not ShardStatus.UNLOADED:
            return False
        self.epoch = epoch
        self.status = ShardStatus.LOADING
        self._context = self._new_context(now_ms)
        return True

    def replay(self, log_records: Iterable[LogRecord]) -> tuple[Anomaly, ...]:
        """Applies records of the log, in the order of their offsets. Returns the anomalies that would fail a broker's load."""
        state = self._context.state
        found: list[Anomaly] = []
        for record in log_records:
            found += state.apply(record, None if record.is_control else decode(record.key, record.value))
        return tuple(found)

    def replay_columns(self, pieces: Iterable[RecordColumns]) -> tuple[Anomaly, ...]:
        """Applies the whole log as columns, in the order of offsets: the result equals `replay` of all its records."""
        return load_columns(self._context.state, self.partition, pieces)

    def finish_load(self, now_ms: int) -> CoordinatorResult:
        """Ends the load: sessions of all members begin now, and groups above `group.max.size` rebalance."""
        context = self._context
        result = self._begin(now_ms)
        self.status = ShardStatus.ACTIVE
        for group_id, view in context.state.groups().items():
            group = context.find(group_id) if view.members else None
            if group is None:
                continue
            if context.behaviour.size_rule is not SizeRule.NONE and len(group) > context.config.group_max_size:
                reason = f"{len(group)} members exceed group.max.size {context.config.group_max_size}"
                rebalance.prepare_rebalance(result, group, reason)
            for member in group.members:
                rebalance.restart_session(result, group, member)
        expiration.schedule_sweep(context, now_ms)
        return self._close(result)

    def unload(self, epoch: int | None, now_ms: int) -> CoordinatorResult:
        """Unloads the partition: another coordinator leads it as of this epoch, or the replica was deleted (None).

        An epoch older than the load's is ignored. Every parked request gets NOT_COORDINATOR, and no more records are written.
        """
        if epoch is not None and epoch < self.epoch:
            return CoordinatorResult()
        self.epoch = self.epoch if epoch is None else epoch
        result = self._begin(now_ms)
        context = self._context
        for group in tuple(context.groups.values()):
            group.transition_to(DEAD, now_ms)
            for member in tuple(group.members):
                rebalance.drop_member(result, group, member, "unloaded", ErrorCode.NOT_COORDINATOR)
        writes, self._writes = self._writes, {}
        for write in writes.values():
            self._continue(write, ErrorCode.NOT_LEADER_OR_FOLLOWER, result)
        self.status = ShardStatus.UNLOADED
        self._context = self._new_context(now_ms)
        return CoordinatorResult(tuple(result.answers))

    # ---- requests, the log, the clock

    def handle(self, request: CoordinatorRequest, reply: ReplyHandle, now_ms: int) -> CoordinatorResult:
        """Handles a request. Exactly one response, with its reply handle, is in this result or a later one."""
        result = self._begin(now_ms)
        error = check_status(request, STATUS_ERRORS[self.status], self.config)
        if error is None:
            HANDLERS[type(request)](result, request, reply)
        else:
            result.answer(reply, error)
        return self._close(result)

    def error_response(self, request: CoordinatorRequest, error: ErrorCode) -> Response:
        """Returns the response to a request that fails as a whole."""
        return error_response(request, error, self.config.behaviour)

    def appended(self, write: Write, base_offset: int, now_ms: int) -> CoordinatorResult:
        """Applies a write that the log has, starting at this offset, and runs its continuations.

        A write from before an unload has no effect: its requests were answered by the unload.
        """
        if self._writes.pop(write.number, None) is None:
            return CoordinatorResult()
        self._apply(write, base_offset, now_ms)
        self._context.unlogged.clear()
        result = self._begin(now_ms)
        self._continue(write, ErrorCode.NONE, result)
        return self._close(result)

    def append_failed(self, write: Write, error: ErrorCode, now_ms: int) -> CoordinatorResult:
        """Runs the continuations of a write that the log has refused for good, with its error."""
        if self._writes.pop(write.number, None) is None:
            return CoordinatorResult()
        result = self._begin(now_ms)
        self._continue(write, error, result)
        return self._close(result)

    def timers_due(self, now_ms: int) -> CoordinatorResult:
        """Runs the timers that are due."""
        result = self._begin(now_ms)
        timers = self._context.timers
        while (due := timers.pop_due(now_ms)) is not None:
            self._fire(result, due)
        return self._close(result)

    def next_deadline(self) -> int | None:
        """Returns the time of the next call of `timers_due`, in ms; None if no timer is set."""
        return self._context.timers.next_deadline()

    def sweep(self, now_ms: int) -> CoordinatorResult:
        """Removes expired offsets and groups, as the timer does every `offsets.retention.check.interval.ms`."""
        result = self._begin(now_ms)
        expiration.sweep(result)
        return self._close(result)

    def topics_deleted(self, topics: frozenset[str], now_ms: int) -> CoordinatorResult:
        """Removes the offsets of deleted topics."""
        result = self._begin(now_ms)
        topics_deleted(result, topics)
        return self._close(result)

    def _fire(self, result: ResultBuilder, due: GroupTimeout) -> None:
        match due:
            case HeartbeatTimeout():
                rebalance.heartbeat_timed_out(result, due)
            case JoinTimeout():
                rebalance.join_timed_out(result, due)
            case SyncTimeout():
                rebalance.sync_timed_out(result, due)
            case ExpirationTimeout():
                expiration.sweep(result)
                expiration.schedule_sweep(result.context, result.now_ms)
            case _:
                assert_never(due)

    def _apply(self, write: Write, base_offset: int, now_ms: int) -> None:
        state = self._context.state
        producer_id, epoch = (-1, -1) if write.producer is None else write.producer
        transactional = write.producer is not None
        if write.control_type is not None:
            key = control_key(write.control_type)
            state.apply(
                LogRecord(self.partition, base_offset, now_ms, key, None, producer_id, epoch, True, True, base_offset), None
            )
        for offset, record in enumerate(write.records, base_offset):
            key, value = write.encoded[offset - base_offset]
            state.apply(
                LogRecord(self.partition, offset, now_ms, key, value, producer_id, epoch, transactional, False, base_offset),
                record,
            )

    def _continue(self, write: Write, error: ErrorCode, result: ResultBuilder) -> None:
        write.then(error, result)
        for then in self._waiting.pop(write.number, ()):
            then(error, result)

    def _new_context(self, now_ms: int) -> CoordinatorContext:
        state = GroupState(self.config.rules, now_ms, self.config.offsets_retention_ms)
        return CoordinatorContext(self.config, self._new_member_id, state)

    def _begin(self, now_ms: int) -> ResultBuilder:
        return ResultBuilder(self._context, now_ms, self._next_write)

    def _next_write(self) -> int:
        self._write_number += 1
        return self._write_number

    def _close(self, result: ResultBuilder) -> CoordinatorResult:
        while result.unwritable:
            result.unwritable.pop(0)(ErrorCode.MESSAGE_TOO_LARGE, result)
        self._writes.update((write.number, write) for write in result.writes)
        for then in result.waiting:
            if self._writes:
                self._waiting.setdefault(next(reversed(self._writes)), []).append(then)
            else:
                then(ErrorCode.NONE, result)
        return result.build()
