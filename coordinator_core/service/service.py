"""The coordinator as a service: a loop per log partition, routing of requests, periodic flushes and compaction."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.context import MemberIds
from coordinator_core.coordinator.coordinator import GroupCoordinator
from coordinator_core.coordinator.describe import merge_lists
from coordinator_core.coordinator.shard import GroupCoordinatorShard, ShardStatus
from coordinator_core.protocol.api import CoordinatorRequest, GroupRequest, Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import ListGroupsRequest, ListGroupsResponse
from coordinator_core.protocol.offsets import TxnMarkerRequest, TxnMarkerResponse
from coordinator_core.segment_log.errors import SegmentLogError
from coordinator_core.service.background import BackgroundTasks
from coordinator_core.service.events import Elected, LogFailed, RequestReceived, Resigned, Stop, TopicDeleted
from coordinator_core.service.flusher import Flusher
from coordinator_core.service.log_interface import CoordinatorLog
from coordinator_core.service.observer import Observer
from coordinator_core.service.partition_loop import PartitionLoop
from coordinator_core.service.reply_handles import FutureReply, GatheredReplies, ReplyHandle
from coordinator_core.service.settings import Fsync, ServiceSettings

#: Concurrent fsyncs share a commit of the file system's journal; more threads than this gain nothing.
_FLUSHERS = 4
_DRAIN_POLL_SECONDS = 0.005


class CoordinatorService:
    """One loop for each log partition. `start` elects this process for all of them, `stop` resigns from them.

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
        numbers = range(log.partitions)
        self._loader = ThreadPoolExecutor(1, "load")
        self._flusher: Flusher[int] = Flusher(log, _FLUSHERS)
        #: The thread of the log cleaner.
        self.cleaner = ThreadPoolExecutor(1, "clean")
        shards = {number: GroupCoordinatorShard(number, config, new_member_id) for number in numbers}
        self._coordinator = GroupCoordinator(config, shards)
        self.loops = {
            number: PartitionLoop(
                shards[number],
                log.partition(number),
                now_ms,
                observer,
                loader=self._loader,
                flusher=self._flusher,
                flush_always=settings.fsync is Fsync.ALWAYS,
            )
            for number in numbers
        }
        self._tasks: list[asyncio.Task[None]] = []
        self._background_tasks: list[asyncio.Task[None]] = []

    # ---- start and stop

    def start(self) -> None:
        """Load every partition; each one serves requests as soon as it is loaded."""
        self._tasks = [asyncio.create_task(loop.run(), name=f"partition {n}") for n, loop in self.loops.items()]
        for number, loop in self.loops.items():
            self.elect(number, loop.log.leader_epoch)
        if self.settings.fsync is Fsync.INTERVAL:
            self._repeat("log-flusher", self.settings.fsync_interval_ms, self._flush_dirty)
        if self.settings.log_cleaner_interval_ms:
            self._repeat("log-cleaner", self.settings.log_cleaner_interval_ms, self._clean)

    def elect(self, partition: int, epoch: int) -> None:
        """Take over and load the log partition from this leader epoch on (`onElection`).

        Ignored for a stale epoch and for a partition that this process owns already. Raises KeyError for an unknown partition.
        """
        self.loops[partition].submit(Elected(epoch))

    def resign(self, partition: int, epoch: int | None) -> None:
        """Give up the log partition as of this leader epoch; None if its replica was deleted (`onResignation`)."""
        self.loops[partition].submit(Resigned(epoch))

    async def drain(self, seconds: float) -> bool:
        """Wait until no request is in progress, except parked ones; False after `seconds`."""
        give_up = perf_counter() + seconds
        while not all(loop.is_quiet for loop in self.loops.values()):
            if perf_counter() >= give_up:
                return False
            await asyncio.sleep(_DRAIN_POLL_SECONDS)
        return True

    async def stop(self) -> None:
        """Answer waiting requests NOT_COORDINATOR, end the loops and flush the logs, which are left open."""
        self._coordinator.active = False
        for task in self._background_tasks:
            task.cancel()
        for loop in self.loops.values():
            loop.submit(Resigned(None))
            loop.submit(Stop())
        await asyncio.gather(*self._tasks, *self._background_tasks, return_exceptions=True)
        self.cleaner.shutdown(wait=True)
        await self._flush_dirty()
        self._loader.shutdown(wait=True)
        self._flusher.close()

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
        return Counter(loop.status for loop in self.loops.values())

    def highest_commits(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the highest offset that any group has committed, for those of the partitions that have commits."""
        wanted = list(partitions)
        highest: dict[TopicPartition, int] = {}
        for loop in self.loops.values():
            if loop.shard.status is not ShardStatus.ACTIVE:
                continue
            for commits in loop.shard.context.state.offsets.committed.values():
                for at in wanted:
                    found = commits.get(at)
                    if found is not None:
                        highest[at] = max(found.offset, highest.get(at, 0))
        return highest

    def forget_topic(self, name: str) -> None:
        """Remove the committed offsets of a deleted topic."""
        for loop in self.loops.values():
            loop.submit(TopicDeleted(name))

    # ---- background tasks

    def _repeat(self, name: str, interval_ms: int, run: Callable[[], Awaitable[None]]) -> None:
        self._background_tasks.append(self._background.repeat(name, interval_ms / 1000, run))

    async def _flush_dirty(self) -> None:
        await asyncio.gather(*(self._flush(loop) for loop in _dirty(self.loops.values())))

    async def _flush(self, loop: PartitionLoop) -> None:
        started = perf_counter()
        loop.is_dirty = False
        try:
            await self._flusher.flush(loop.shard.partition)
        except SegmentLogError as error:
            loop.submit(LogFailed(str(error)))
        except Exception as error:
            # the appended records may not be on disk, so the partition fails as after an I/O error (Kafka's
            # LogDirFailureChannel)
            self._observer.bug(f"fsync of partition {loop.shard.partition}", error)
            loop.submit(LogFailed(f"fsync: {type(error).__name__}: {error}"))
        else:
            self._observer.flushed(perf_counter() - started)

    async def _clean(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self.cleaner, self.log.clean, self._now_ms())
        except (SegmentLogError, OSError) as error:
            self._observer.cleaning_failed(str(error))


def _dirty(loops: Iterable[PartitionLoop]) -> list[PartitionLoop]:
    return [loop for loop in loops if loop.is_dirty and loop.failure is None]
