"""The loops of all partitions of one coordinator's log, with their loads, periodic flushes and compaction."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, Generic

from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.errors import SegmentLogError
from coordinator_core.service.background import BackgroundTasks
from coordinator_core.service.events import Elected, LogFailed, Resigned, Stop
from coordinator_core.service.flusher import Flusher
from coordinator_core.service.log_interface import CoordinatorLog
from coordinator_core.service.observer import Observer
from coordinator_core.service.partition_loop import PartitionLoop
from coordinator_core.service.settings import Fsync, ServiceSettings
from coordinator_core.service.shard_interface import LogShard, ResultT

#: Concurrent fsyncs share a commit of the file system's journal; more threads than this gain nothing.
_FLUSHERS = 4


class PartitionLoops(Generic[ResultT]):
    """One loop for each partition of `log`. `start` elects this process for all of them, `stop` resigns from them.

    Everything except loads, fsyncs and compaction runs in the asyncio event loop that calls `start`. `name` distinguishes the
    background tasks of several logs, `label` their partitions.
    """

    def __init__(
        self,
        name: str,
        shards: Mapping[int, LogShard[ResultT]],
        settings: ServiceSettings,
        log: CoordinatorLog,
        now_ms: Callable[[], int],
        observer: Observer,
        background: BackgroundTasks,
        *,
        label: Callable[[int], int | str],
        take_effects: Callable[[int, ResultT], None],
        batch_of: Callable[[Any], AppendBatch],
        refused: ErrorCode,
    ) -> None:
        self._name = name
        self._settings = settings
        self._log = log
        self._now_ms = now_ms
        self._observer = observer
        self._background = background
        self._loader = ThreadPoolExecutor(1, "load")
        self._flusher: Flusher[int] = Flusher(log, _FLUSHERS)
        self._cleaner = ThreadPoolExecutor(1, "clean")
        self.by_partition: Mapping[int, PartitionLoop[ResultT]] = {
            number: PartitionLoop(
                shard,
                log.partition(number),
                now_ms,
                observer,
                loader=self._loader,
                flusher=self._flusher,
                flush_always=settings.fsync is Fsync.ALWAYS,
                label=label(number),
                take_effects=_for_partition(take_effects, number),
                batch_of=batch_of,
                refused=refused,
            )
            for number, shard in shards.items()
        }
        self._tasks: list[asyncio.Task[None]] = []
        self._background_tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Load every partition; each one serves requests as soon as it is loaded."""
        self._tasks = [asyncio.create_task(loop.run(), name=f"{self._name} {n}") for n, loop in self.by_partition.items()]
        for loop in self.by_partition.values():
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


def _for_partition(take_effects: Callable[[int, ResultT], None], number: int) -> Callable[[ResultT], None]:
    return lambda result: take_effects(number, result)
