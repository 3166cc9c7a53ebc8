"""The event loop of one log partition.

Requests, timers and results of loads arrive in its inbox, and one task handles them in order. Only this task uses the shard, so
the core needs no lock. One turn handles all queued events, appends the resulting records with one call (group commit), flushes
them if `fsync` is `always`, and passes the offsets to the shard. Events that arrive meanwhile wait for the next turn.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from time import perf_counter
from typing import Any, Generic, assert_never, cast

from coordinator_core.coordinator_common.results import ShardStatus
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.errors import AppendFailed, PartitionFailed
from coordinator_core.service.runtime.events import (
    Elected,
    Event,
    Loaded,
    LogFailed,
    RequestReceived,
    Resigned,
    ShardCalled,
    Stop,
    TimerFired,
)
from coordinator_core.service.runtime.flusher import Flusher
from coordinator_core.service.runtime.loading import load
from coordinator_core.service.runtime.log_interface import LogPartition
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.service.runtime.reply_handles import ReplyHandle
from coordinator_core.service.runtime.shard_interface import CoordinatorTraits, LogShard, ResultT
from coordinator_core.topic_log.errors import PartitionFenced, PartitionLost

#: Shortest delay of a timer, in seconds.
_SHORTEST_TIMER = 0.001
#: Time in which an append of an `appender` collects further writes (docs/adr/0051).
_LINGER_SECONDS = 0.003
#: Pause before a partition is loaded again, in seconds.
_RELOAD_SECONDS = 0.5


class PartitionLoop(Generic[ResultT]):
    """The event loop of a shard; `run` is its task.

    `traits` are those of its coordinator. `now_ms` is the clock, `loader` runs loads, `appender` runs appends (None: the event
    loop), `flusher` runs fsyncs. With `flush_always` each append is flushed before its requests are answered.
    """

    def __init__(
        self,
        shard: LogShard[ResultT],
        log: LogPartition,
        traits: CoordinatorTraits[ResultT],
        now_ms: Callable[[], int],
        observer: Observer,
        *,
        loader: Executor,
        appender: Executor | None,
        flusher: Flusher[int],
        flush_always: bool,
    ) -> None:
        self.shard = shard
        self.log = log
        #: Reason why the partition failed, None if it has not failed.
        self.failure: str | None = None
        #: Whether records were appended since the last flush.
        self.is_dirty = False
        self._traits = traits
        self._label = traits.label(shard.partition)
        self._now_ms = now_ms
        self._observer = observer
        self._loader = loader
        self._appender = appender
        self._flusher = flusher
        self._flush_always = flush_always
        self._inbox: deque[Event] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._writes: list[Any] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._reload: asyncio.TimerHandle | None = None
        self._loading: asyncio.Future[Loaded] | None = None
        self._stopping = False

    @property
    def status(self) -> str:
        """Status of the partition: unloaded, loading, active or failed."""
        return "failed" if self.failure is not None else self.shard.status.value

    @property
    def is_quiet(self) -> bool:
        """Whether no event and no append is in progress."""
        return not self._inbox and not self._writes and self._wake is not None

    def submit(self, event: Event) -> None:
        """Add an event for the next turn."""
        self._inbox.append(event)
        wake = self._wake
        if wake is not None and not wake.done():
            wake.set_result(None)

    async def run(self) -> None:
        """Run turns until the event `Stop`."""
        try:
            while not self._stopping:
                if not self._inbox:
                    self._wake = asyncio.get_running_loop().create_future()
                    await self._wake
                    self._wake = None
                try:
                    await self._turn()
                except Exception as error:
                    self._fail_after(error)
        finally:
            self._cancel_timer()
            self._cancel_reload()

    async def _turn(self) -> None:
        while self._inbox or self._writes:
            while self._inbox:
                self._handle(self._inbox.popleft())
            if self._writes:
                if self._appender is not None:
                    await self._linger()
                await self._store()
        self._set_timer()

    async def _linger(self) -> None:
        """Collect the writes of more events: a transaction costs the same for one write and for many."""
        await asyncio.sleep(_LINGER_SECONDS)
        while self._inbox:
            self._handle(self._inbox.popleft())

    def _fail_after(self, error: Exception) -> None:
        """Fail the partition after an unexpected error. Its loop continues, so that requests get an error response."""
        where = f"partition {self._label}"
        self._observer.bug(where, error)
        try:
            self._fail(f"{type(error).__name__}: {error}")
        except Exception as further:
            self._observer.bug(f"{where}, unloading", further)
            self.shard.status = ShardStatus.UNLOADED

    # ---- events

    def _handle(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._request_received(event)
            case Elected():
                self._elected(event)
            case Loaded():
                self._loaded(event)
            case Resigned():
                self._resigned(event)
            case TimerFired():
                self._timers_due()
            case ShardCalled():
                self._call(event)
            case LogFailed():
                self._fail(event.reason)
            case Stop():
                self._stopping = True
            case _:
                assert_never(event)

    def _request_received(self, event: RequestReceived) -> None:
        self._observer.queued(perf_counter() - event.at)
        try:
            result = self.shard.handle(event.request, event.reply_handle, self._now_ms())
        except Exception as error:
            self._observer.bug(f"partition {self._label}, {type(event.request).__name__}", error)
            event.reply_handle.answer(self.shard.error_response(event.request, ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        self._take(result)

    def _call(self, event: ShardCalled) -> None:
        try:
            result = event.call(self._now_ms())
        except Exception as error:
            self._observer.bug(f"partition {self._label}, {event.name}", error)
            return
        self._take(result)

    def _elected(self, event: Elected) -> None:
        self._cancel_reload()
        epoch = self.shard.epoch + 1 if event.epoch is None else event.epoch
        if self.failure is not None or not self.shard.begin_load(epoch, self._now_ms()):
            return
        self._load(epoch)

    def _load(self, epoch: int) -> None:
        """Load in a thread, after an earlier load has ended: an abandoned one must not fence the log after this one."""
        if not self._is_loading(epoch):
            return
        if self._loading is not None and not self._loading.done():
            self._loading.add_done_callback(lambda _: self._load(epoch))
            return
        self._loading = asyncio.get_running_loop().run_in_executor(
            self._loader, load, self.shard, self.log, epoch, lambda: self._is_loading(epoch)
        )
        self._loading.add_done_callback(lambda done: self.submit(_loaded(epoch, done)))

    def _loaded(self, event: Loaded) -> None:
        if not self._is_loading(event.epoch):
            return
        if event.error is not None and event.may_pass:
            self._observer.load_failed(self._label, event.error, _RELOAD_SECONDS)
            self._unload_and_reload()
            return
        if event.error is not None:
            self._fail(event.error)
            return
        result = self.shard.finish_load(self._now_ms())
        self._observer.load_finished(self._label, event.epoch, event.records, event.anomalies, event.seconds)
        self._take(result)

    def _resigned(self, event: Resigned) -> None:
        self._cancel_reload()
        was_ours = self.shard.status is not ShardStatus.UNLOADED
        self._take(self.shard.unload(event.epoch, self._now_ms()))
        if self.shard.status is ShardStatus.UNLOADED:
            # their requests are answered; after a load that begins now they would be in the log only
            self._writes.clear()
        if was_ours and self.shard.status is ShardStatus.UNLOADED:
            self._observer.unloaded(self._label, self.shard.epoch)

    def _timers_due(self) -> None:
        if self.shard.status is ShardStatus.ACTIVE:
            self._take(self.shard.timers_due(self._now_ms()))

    def _unload_and_reload(self) -> None:
        """Answer waiting requests NOT_COORDINATOR, and load the partition again after a pause, unless another node gets it."""
        self._unload()
        self._reload = asyncio.get_running_loop().call_later(_RELOAD_SECONDS, self.submit, Elected(None))

    def _unload(self) -> None:
        self._writes.clear()
        self._take(self.shard.unload(None, self._now_ms()))

    def _cancel_reload(self) -> None:
        if self._reload is not None:
            self._reload.cancel()
            self._reload = None

    def _is_loading(self, epoch: int) -> bool:
        return self.shard.status is ShardStatus.LOADING and self.shard.epoch == epoch

    # ---- results

    def _take(self, result: ResultT) -> None:
        for answer in result.answers:
            cast("ReplyHandle", answer.reply).answer(answer.response)
        self._traits.take_effects(self.shard.partition, result)
        self._writes.extend(result.writes)

    async def _store(self) -> None:
        """Append all writes of the turn, in order, with one call, except those that the state of their producer refuses."""
        writes, self._writes = self._writes, []
        started = perf_counter()
        batches = [self._traits.batch_of(write) for write in writes]
        rejected = self.log.check_producers(batches, self._now_ms())
        accepted = [batch for position, batch in enumerate(batches) if position not in rejected] if rejected else batches
        offsets: Sequence[int] = ()
        try:
            if accepted:
                offsets = await self._append(accepted)
                self.is_dirty = True
                self._observer.appended(len(accepted), perf_counter() - started)
                if self._flush_always:
                    await self._flush()
        except AppendFailed as error:
            self._observer.append_refused(self._label, len(writes), str(error))
            self._refuse(writes, self._traits.refused)
            return
        except PartitionLost as error:
            self._refuse(writes, ErrorCode.REQUEST_TIMED_OUT)
            self._observer.lost(self._label, str(error))
            self._unload_and_reload()
            return
        except PartitionFenced as error:
            self._refuse(writes, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self._observer.fenced(self._label, str(error))
            self._unload()
            return
        except PartitionFailed as error:
            self._refuse(writes, self._traits.refused)
            self._fail(str(error))
            return
        now_ms = self._now_ms()
        next_offsets = iter(offsets)
        for position, write in enumerate(writes):
            if position in rejected:
                self._take(self.shard.append_failed(write, ErrorCode(rejected[position].error), now_ms))
            else:
                self._take(self.shard.appended(write, next(next_offsets), now_ms))

    async def _append(self, batches: Sequence[AppendBatch]) -> Sequence[int]:
        now_ms = self._now_ms()
        if self._appender is None:
            return self.log.append(batches, now_ms)
        return await asyncio.get_running_loop().run_in_executor(self._appender, self.log.append, batches, now_ms)

    async def _flush(self) -> None:
        started = perf_counter()
        self.is_dirty = False
        await self._flusher.flush(self.shard.partition)
        self._observer.flushed(perf_counter() - started)

    def _refuse(self, writes: list[Any], error: ErrorCode) -> None:
        now_ms = self._now_ms()
        for write in writes:
            self._take(self.shard.append_failed(write, error, now_ms))

    def _fail(self, reason: str) -> None:
        """Fail the partition: waiting requests are answered NOT_COORDINATOR."""
        if self.failure is None:
            self.failure = reason
            self._observer.failed(self._label, reason)
        self._unload()

    # ---- time

    def _set_timer(self) -> None:
        deadline = self.shard.next_deadline()
        if deadline is None:
            self._cancel_timer()
        elif self._timer is None or deadline < self._timer_ms:
            self._cancel_timer()
            delay = max((deadline - self._now_ms()) / 1000, _SHORTEST_TIMER)
            self._timer_ms = deadline
            self._timer = asyncio.get_running_loop().call_later(delay, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self.submit(TimerFired())

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _loaded(epoch: int, done: "asyncio.Future[Loaded]") -> Loaded:
    error = done.exception()
    return done.result() if error is None else Loaded(epoch, error=f"{type(error).__name__}: {error}")
