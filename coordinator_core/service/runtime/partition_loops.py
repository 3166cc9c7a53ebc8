"""The loops of all partitions of one coordinator's log, with their loads, periodic flushes and compaction."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Generic

from coordinator_core.segment_log.errors import SegmentLogError
from coordinator_core.service.runtime.background import BackgroundTasks
from coordinator_core.service.runtime.events import Elected, LogFailed, Resigned, Stop
from coordinator_core.service.runtime.flusher import Flusher
from coordinator_core.service.runtime.log_interface import CoordinatorLog
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.service.runtime.partition_loop import PartitionLoop
from coordinator_core.service.runtime.shard_interface import CoordinatorTraits, LogShard, ResultT
from coordinator_core.service.settings import Fsync, ServiceSettings

#: Concurrent fsyncs share a commit of the file system's journal; more threads than this gain nothing.
_FLUSHERS = 4


class PartitionLoops(Generic[ResultT]):
    """One loop for each of the `shards`. `start` elects this process for those that it owns, `stop` resigns from all.

    Everything except loads, fsyncs, compaction and appends that wait runs in the asyncio event loop that calls `start`.
    """

    def __init__(
        self,
        traits: CoordinatorTraits[ResultT],
        shards: Mapping[int, LogShard[ResultT]],
        settings: ServiceSettings,
        log: CoordinatorLog,
        now_ms: Callable[[], int],
        observer: Observer,
        background: BackgroundTasks,
    ) -> None:
        self._name = traits.name
        self._settings = settings
        self._log = log
        self._now_ms = now_ms
        self._observer = observer
        self._background = background
        self._loader = ThreadPoolExecutor(log.load_threads, "load")
        self._appender = ThreadPoolExecutor(log.append_threads, "append") if log.append_threads else None
        self._flusher: Flusher[int] = Flusher(log, _FLUSHERS)
        self._cleaner = ThreadPoolExecutor(1, "clean")
        self.by_partition: Mapping[int, PartitionLoop[ResultT]] = {
            number: PartitionLoop(
                shard,
                log.partition(number),
                traits,
                now_ms,
                observer,
                loader=self._loader,
                appender=self._appender,
                flusher=self._flusher,
                flush_always=settings.fsync is Fsync.ALWAYS,
            )
            for number, shard in shards.items()
        }
        self._tasks: list[asyncio.Task[None]] = []
        self._background_tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Load the partitions of this process; each one serves requests as soon as it is loaded."""
        self._tasks = [asyncio.create_task(loop.run(), name=f"{self._name} {n}") for n, loop in self.by_partition.items()]
        for number in self._log.owned_at_start:
            loop = self.by_partition[number]
            loop.submit(Elected(loop.log.leader_epoch))
        if self._settings.fsync is Fsync.INTERVAL:
            self._repeat("log-flusher", self._settings.fsync_interval_ms, self._flush_dirty)
        if self._settings.log_cleaner_interval_ms:
            self._repeat("log-cleaner", self._settings.log_cleaner_interval_ms, self._clean)

    @property
    def is_quiet(self) -> bool:
        """Whether no request is in progress, except parked ones."""
        return all(loop.is_quiet for loop in self.by_partition.values())

    async def stop(self) -> None:
        """Answer waiting requests NOT_COORDINATOR, end the loops and flush the log, which is left open."""
        for task in self._background_tasks:
            task.cancel()
        for loop in self.by_partition.values():
            loop.submit(Resigned(None))
            loop.submit(Stop())
        await asyncio.gather(*self._tasks, *self._background_tasks, return_exceptions=True)
        self._cleaner.shutdown(wait=True)
        await self._flush_dirty()
        self._loader.shutdown(wait=True)
        if self._appender is not None:
            self._appender.shutdown(wait=True)
        self._flusher.close()

    @property
    def by_status(self) -> Counter[str]:
        """Number of log partitions by status: unloaded, loading, active, failed; without zeros."""
        return Counter(loop.status for loop in self.by_partition.values())

    @property
    def failures(self) -> dict[int, str]:
        """Reasons of the failed log partitions."""
        return {number: loop.failure for number, loop in self.by_partition.items() if loop.failure is not None}

    # ---- background tasks

    def _repeat(self, name: str, interval_ms: int, run: Callable[[], Awaitable[None]]) -> None:
        self._background_tasks.append(self._background.repeat(f"{self._name}{name}", interval_ms / 1000, run))

    async def _flush_dirty(self) -> None:
        await asyncio.gather(*(self._flush(loop) for loop in self._dirty()))

    async def _flush(self, loop: PartitionLoop[ResultT]) -> None:
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
            await asyncio.get_running_loop().run_in_executor(self._cleaner, self._log.clean, self._now_ms())
        except (SegmentLogError, OSError) as error:
            self._observer.cleaning_failed(str(error))

    def _dirty(self) -> list[PartitionLoop[ResultT]]:
        return [loop for loop in self.by_partition.values() if loop.is_dirty and loop.failure is None]
