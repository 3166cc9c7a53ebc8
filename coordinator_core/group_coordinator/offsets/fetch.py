"""OffsetFetch (`handleFetchOffsets`, `OffsetMetadataManager.fetchOffsets`): offsets in the log, never those in flight."""

from collections.abc import Collection, Mapping
from uuid import UUID

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.group_coordinator.append_errors import JAVA_FETCH_ERRORS
from coordinator_core.group_coordinator.context import CoordinatorContext
from coordinator_core.group_coordinator.group.states import DEAD
from coordinator_core.group_coordinator.result import ResultBuilder
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import INVALID_OFFSET, FetchedOffset, OffsetFetchRequest, OffsetFetchResponse
from coordinator_core.state.offsets import CommittedOffset

_NOTHING = FetchedOffset()
#: `OffsetFetchResponse.UNKNOWN_PARTITION`
_NOT_IN_ZOOKEEPER = FetchedOffset(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_UNSTABLE = FetchedOffset(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)


def fetch_offsets(result: ResultBuilder, request: OffsetFetchRequest, reply: ReplyHandle) -> None:
    """Fetches committed offsets. Partitions without a commit, and missing groups, have offset -1 and no error.

    With `require_stable`, a partition with a commit in an open transaction gets UNSTABLE_OFFSET_COMMIT (KIP-447). For a commit
    in flight, Scala coordinators return the same error; the Java coordinator parks the request until the log has it. Fetches from
    ZooKeeper (v0) find the same offsets, in eras whose brokers have ZooKeeper.
    """
    context = result.context
    if request.in_zookeeper:
        result.answer(reply, _response_of_zookeeper(context, request))
        return
    if not (request.require_stable and context.behaviour.stable_fetch_waits):
        result.answer(reply, _response(context, request))
        return

    def appended(error: ErrorCode, later: ResultBuilder) -> None:
        refused = JAVA_FETCH_ERRORS.get(error, error)
        later.answer(reply, _response(context, request) if refused is ErrorCode.NONE else OffsetFetchResponse(refused, {}))

    result.after_writes(appended)


def _response(context: CoordinatorContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    group = context.groups.get(request.group_id)
    is_dead = group is not None and group.is_in(DEAD)
    committed: Mapping[TopicPartition, CommittedOffset] = {} if is_dead else context.state.committed(request.group_id)
    unstable: Collection[TopicPartition] = ()
    if request.require_stable and not is_dead:
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


def _response_of_zookeeper(context: CoordinatorContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Respond as brokers do from ZooKeeper: without metadata, and with an error for partitions without a commit."""
    if not context.behaviour.has_zookeeper:
        return OffsetFetchResponse(ErrorCode.UNSUPPORTED_VERSION, {})
    response = _response(context, request)
    return OffsetFetchResponse(
        response.error,
        {
            at: _NOT_IN_ZOOKEEPER if found.offset == INVALID_OFFSET else FetchedOffset(found.offset)
            for at, found in response.offsets.items()
        },
    )


def _fetched(commit: CommittedOffset | None, topic_ids: Mapping[str, UUID] | None, partition: TopicPartition) -> FetchedOffset:
    if commit is None:
        return _NOTHING
    topic_id = None if topic_ids is None else topic_ids.get(partition.topic)
    if topic_id is not None and commit.topic_id is not None and topic_id != commit.topic_id:
        return _NOTHING
    return FetchedOffset(commit.offset, -1 if commit.leader_epoch is None else commit.leader_epoch, commit.metadata)
