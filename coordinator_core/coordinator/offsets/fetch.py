"""OffsetFetch (`handleFetchOffsets`, `OffsetMetadataManager.fetchOffsets`): what the log has, never what is on its way there."""

from collections.abc import Collection, Mapping
from uuid import UUID

from coordinator_core.coordinator.classic.rebalance import DEAD
from coordinator_core.coordinator.context import CoordinatorContext
from coordinator_core.coordinator.errors import JAVA_FETCH_ERRORS, ErrorCode
from coordinator_core.coordinator.messages.offsets import FetchedOffset, OffsetFetchRequest, OffsetFetchResponse
from coordinator_core.coordinator.reply_handle import ReplyHandle
from coordinator_core.coordinator.result import ResultBuilder
from coordinator_core.state.offsets import CommittedOffset, TopicPartition

_NOTHING = FetchedOffset()
_UNSTABLE = FetchedOffset(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)


def fetch_offsets(result: ResultBuilder, request: OffsetFetchRequest, reply: ReplyHandle) -> None:
    """Partitions without a commit, and groups that are not there, have offset -1 and no error.

    With `require_stable`, a partition with a commit in an open transaction is UNSTABLE_OFFSET_COMMIT (KIP-447). For one
    that is on its way to the log, Scala coordinators answer the same; the Java one lets the request wait for the log.
    """
    context = result.context
    if not (request.require_stable and context.behaviour.stable_fetch_waits):
        result.answer(reply, _response(context, request))
        return

    def settled(error: ErrorCode, later: ResultBuilder) -> None:
        refused = JAVA_FETCH_ERRORS.get(error, error)
        later.answer(reply, _response(context, request) if refused is ErrorCode.NONE else OffsetFetchResponse(refused, {}))

    result.after_writes(settled)


def _response(context: CoordinatorContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    group = context.groups.get(request.group_id)
    gone = group is not None and group.is_in(DEAD)
    committed: Mapping[TopicPartition, CommittedOffset] = {} if gone else context.state.committed(request.group_id)
    unstable: Collection[TopicPartition] = ()
    if request.require_stable and not gone:
        unstable = context.state.pending(request.group_id).keys()
        if not context.behaviour.stable_fetch_waits:
            unstable |= context.in_flight.of(request.group_id)
    everything = request.partitions is None or (not request.partitions and context.behaviour.fetches_all_for_none)
    wanted = tuple(committed) if everything else request.partitions or ()
    offsets = {
        partition: _UNSTABLE if partition in unstable else _fetched(committed.get(partition), request.topic_ids, partition)
        for partition in wanted
    }
    return OffsetFetchResponse(ErrorCode.NONE, offsets)


def _fetched(commit: CommittedOffset | None, topic_ids: Mapping[str, UUID] | None, partition: TopicPartition) -> FetchedOffset:
    if commit is None:
        return _NOTHING
    asked = None if topic_ids is None else topic_ids.get(partition.topic)
    if asked is not None and commit.topic_id is not None and asked != commit.topic_id:
        return _NOTHING
    return FetchedOffset(commit.offset, -1 if commit.leader_epoch is None else commit.leader_epoch, commit.metadata)
