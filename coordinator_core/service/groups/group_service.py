"""The coordinator as a service: a loop per log partition, routing of requests, periodic flushes and compaction."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import perf_counter

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.coordinator_common.results import ShardStatus
from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.group_coordinator.context import MemberIds
from coordinator_core.group_coordinator.describe import merge_lists
from coordinator_core.group_coordinator.group_coordinator import GroupCoordinator
from coordinator_core.group_coordinator.result import CoordinatorResult, Write
from coordinator_core.group_coordinator.shard import GroupCoordinatorShard
from coordinator_core.producers.entry import ProducerStateEntry
from coordinator_core.protocol.api import CoordinatorRequest, GroupRequest, Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import ListGroupsRequest, ListGroupsResponse
from coordinator_core.protocol.offsets import TxnMarkerRequest, TxnMarkerResponse
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.service.runtime.background import BackgroundTasks
from coordinator_core.service.runtime.events import Elected, RequestReceived, Resigned, ShardCalled
from coordinator_core.service.runtime.log_interface import CoordinatorLog
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.service.runtime.partition_loops import PartitionLoops
from coordinator_core.service.runtime.reply_handles import FutureReply, GatheredReplies, ReplyHandle
from coordinator_core.service.runtime.shard_interface import CoordinatorTraits
from coordinator_core.service.settings import ServiceSettings

#: `producer.id.expiration.check.interval.ms`
_EXPIRATION_SECONDS = 600


def _batch_of(write: Write) -> AppendBatch:
    return AppendBatch(write.encoded, write.producer, write.control_type, write.coordinator_epoch, write.transaction_version)


class GroupCoordinatorService:
    """One loop for each log partition that this process may own. `start` elects it for those that it owns, `stop` resigns.

    Everything except loads, fsyncs and compaction runs in the asyncio event loop that calls `start`.
    """

    def __init__(
        self,
        config: CoordinatorConfig,
        settings: ServiceSettings,
        log: CoordinatorLog,
        now_ms: Callable[[], int],
        new_member_id: MemberIds,
        observer: Observer,
        background: BackgroundTasks,
    ) -> None:
        self.config = config
        self.settings = settings
        self.log = log
        self._observer = observer
        self._background = background
        self._now_ms = now_ms
        self._expiration: asyncio.Task[None] | None = None
        #: The state machines by log partition.
        self.shards = {number: GroupCoordinatorShard(number, config, new_member_id) for number in log.numbers}
        self._coordinator = GroupCoordinator(config, self.shards)
        self._loops: PartitionLoops[CoordinatorResult] = PartitionLoops(
            CoordinatorTraits("", lambda number: number, self._take_events, _batch_of, ErrorCode.KAFKA_STORAGE_ERROR),
            self.shards,
            settings,
            log,
            now_ms,
            observer,
            background,
        )
        self.loops = self._loops.by_partition

    def _take_events(self, partition: int, result: CoordinatorResult) -> None:
        if result.group_events:
            self._observer.group_events(partition, result.group_events)

    # ---- start and stop

    def start(self) -> None:
        """Load every partition; each one serves requests as soon as it is loaded."""
        self._loops.start()
        self._remove_expired_producers()
        self._expiration = self._background.repeat("producer-expiration", _EXPIRATION_SECONDS, self._expire_producers)

    async def _expire_producers(self) -> None:
        self._remove_expired_producers()

    def _remove_expired_producers(self) -> None:
        for number in self.log.numbers:
            self.log.partition(number).producers.remove_expired(self._now_ms(), self.settings.producer_id_expiration_ms)

    def elect(self, partition: int, epoch: int | None) -> None:
        """Take over and load the log partition from this leader epoch on, None for the next one (`onElection`).

        Ignored for a stale epoch and for a partition that this process owns already. Raises KeyError for an unknown partition.
        """
        self.loops[partition].submit(Elected(epoch))

    def resign(self, partition: int, epoch: int | None) -> None:
        """Give up the log partition as of this leader epoch; None if its replica was deleted (`onResignation`)."""
        self.loops[partition].submit(Resigned(epoch))

    @property
    def is_quiet(self) -> bool:
        """Whether no request is in progress, except parked ones."""
        return self._loops.is_quiet

    async def stop(self) -> None:
        """Answer waiting requests NOT_COORDINATOR, end the loops and flush the logs, which are left open."""
        self._coordinator.active = False
        if self._expiration is not None:
            self._expiration.cancel()
        await self._loops.stop()

    # ---- requests

    def submit(self, request: CoordinatorRequest, reply_handle: ReplyHandle) -> None:
        """Submit a request to the partition of its group, ListGroups to all. The reply handle gets one response."""
        if isinstance(request, ListGroupsRequest):
            self._submit_to_all(request, reply_handle)
            return
        if not isinstance(request, GroupRequest):
            raise TypeError(f"{type(request).__name__} names no group: use end_transaction")
        routed = self._coordinator.route(request)
        if isinstance(routed, GroupCoordinatorShard):
            self.loops[routed.partition].submit(RequestReceived(request, reply_handle, perf_counter()))
        else:
            reply_handle.answer(routed)

    def partition_for(self, group_id: str) -> int:
        """Return the log partition of a group."""
        return self._coordinator.partition_for(group_id)

    def end_transaction(self, partition: int, request: TxnMarkerRequest, reply_handle: ReplyHandle) -> None:
        """Submit a transaction marker to one log partition; answer UNKNOWN_TOPIC_OR_PARTITION if it does not exist."""
        loop = self.loops.get(partition)
        if loop is None:
            reply_handle.answer(TxnMarkerResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            loop.submit(RequestReceived(request, reply_handle, perf_counter()))

    async def answer(self, request: CoordinatorRequest) -> Response:
        """Return the response to a request from within this process."""
        reply_handle = FutureReply()
        self.submit(request, reply_handle)
        return await reply_handle.future

    def _submit_to_all(self, request: ListGroupsRequest, reply_handle: ReplyHandle) -> None:
        merged = self.config.behaviour.lists_while_loading

        def answer(responses: list[Response]) -> None:
            lists = (response for response in responses if isinstance(response, ListGroupsResponse))
            reply_handle.answer(merge_lists(lists, lists_while_loading=merged))

        gathered = GatheredReplies(len(self.loops), answer)
        for loop, part in zip(self.loops.values(), gathered.handles(), strict=True):
            loop.submit(RequestReceived(request, part, perf_counter()))

    # ---- state

    @property
    def partitions_by_status(self) -> Mapping[str, int]:
        """Number of log partitions by status: unloaded, loading, active, failed; without zeros."""
        return self._loops.by_status

    @property
    def failures(self) -> Mapping[int, str]:
        """Reasons of the failed log partitions."""
        return self._loops.failures

    def highest_commits(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the highest offset that any group has committed, for those of the partitions that have commits."""
        wanted = list(partitions)
        highest: dict[TopicPartition, int] = {}
        for shard in self.shards.values():
            if shard.status is not ShardStatus.ACTIVE:
                continue
            for commits in shard.context.state.offsets.committed.values():
                for at in wanted:
                    found = commits.get(at)
                    if found is not None:
                        highest[at] = max(found.offset, highest.get(at, 0))
        return highest

    def producers(self, partition: int) -> Iterable[ProducerStateEntry]:
        """Return the producers of a log partition; none of one in the share of another node."""
        return self.log.partition(partition).producers.entries.values() if partition in self.loops else ()

    def create_group(self, group_id: str) -> None:
        """Create the group if it is missing, without a record."""
        number = self.partition_for(group_id)
        self.loops[number].submit(ShardCalled("new group", partial(_create_group, self.shards[number], group_id)))

    def forget_topic(self, name: str) -> None:
        """Remove the committed offsets of a deleted topic."""
        for number, loop in self.loops.items():
            shard = self.shards[number]
            loop.submit(ShardCalled("topic deleted", partial(_forget_topic, shard, name)))


def _create_group(shard: GroupCoordinatorShard, group_id: str, now_ms: int) -> CoordinatorResult:
    context = shard.context
    if shard.status is ShardStatus.ACTIVE and context.find(group_id) is None and not context.is_foreign(group_id):
        context.create(group_id, now_ms)
    return CoordinatorResult()


def _forget_topic(shard: GroupCoordinatorShard, name: str, now_ms: int) -> CoordinatorResult:
    return shard.topics_deleted(frozenset({name}), now_ms) if shard.status is ShardStatus.ACTIVE else CoordinatorResult()
