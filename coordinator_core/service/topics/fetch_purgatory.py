"""Fetches that wait for records (`DelayedFetch`): until there are `min_bytes`, or `max_wait_ms` has passed."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable

from coordinator_core.protocol.cluster import FetchedPartition, FetchRequest, FetchResponse
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.segment_log.data_partition import DataPartition
from coordinator_core.service.runtime.reply_handles import ReplyHandle

#: Upper bound of `max_wait_ms`.
_LONGEST_WAIT_MS = 30_000

Read = Callable[[FetchRequest], tuple[FetchedPartition, ...]]


class _WaitingFetch:
    __slots__ = ("missing_bytes", "partitions", "reply_handle", "request", "timer")

    def __init__(self, request: FetchRequest, partitions: frozenset[DataPartition], reply_handle: ReplyHandle) -> None:
        self.request = request
        self.partitions = partitions
        self.reply_handle = reply_handle
        self.missing_bytes = 0
        self.timer: asyncio.TimerHandle | None = None


class FetchPurgatory:
    """Answers fetches, now or later; `read` reads the partitions of a request. Event loop only."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._waiting: defaultdict[DataPartition, set[_WaitingFetch]] = defaultdict(set)

    def fetch(self, request: FetchRequest, partitions: Iterable[DataPartition], reply_handle: ReplyHandle) -> None:
        """Answer the request; `partitions` are those of its partitions that have data."""
        waiting = _WaitingFetch(request, frozenset(partitions), reply_handle)
        if not self._answer_if_ready(waiting, must=request.max_wait_ms <= 0 or not request.partitions):
            seconds = min(request.max_wait_ms, _LONGEST_WAIT_MS) / 1000
            waiting.timer = asyncio.get_running_loop().call_later(seconds, self._time_out, waiting)
            for partition in waiting.partitions:
                self._waiting[partition].add(waiting)

    def appended(self, partition: DataPartition, size: int) -> None:
        """Answer the fetches that have enough bytes now; `size` bytes have become visible."""
        for waiting in list(self._waiting.get(partition, ())):
            waiting.missing_bytes -= size
            if waiting.missing_bytes <= 0 and self._answer_if_ready(waiting):
                self._forget(waiting)

    def changed(self, partition: DataPartition) -> None:
        """Look at all fetches of a partition again: a transaction has ended, or the partition is deleted."""
        for waiting in list(self._waiting.get(partition, ())):
            if self._answer_if_ready(waiting):
                self._forget(waiting)

    def close(self) -> None:
        """Answer all fetches with what there is."""
        for waiting in {each for fetches in self._waiting.values() for each in fetches}:
            self._answer_if_ready(waiting, must=True)
            self._forget(waiting)

    def _time_out(self, waiting: _WaitingFetch) -> None:
        self._forget(waiting)
        self._answer_if_ready(waiting, must=True)

    def _answer_if_ready(self, waiting: _WaitingFetch, *, must: bool = False) -> bool:
        found = self._read(waiting.request)
        size = sum(len(each.records) for each in found)
        has_error = any(each.error is not ErrorCode.NONE for each in found)
        waiting.missing_bytes = waiting.request.min_bytes - size
        if not (must or has_error or waiting.missing_bytes <= 0):
            return False
        waiting.reply_handle.answer(FetchResponse(found))
        return True

    def _forget(self, waiting: _WaitingFetch) -> None:
        if waiting.timer is not None:
            waiting.timer.cancel()
        for partition in waiting.partitions:
            fetches = self._waiting.get(partition)
            if fetches is not None:
                fetches.discard(waiting)
                if not fetches:
                    del self._waiting[partition]
