"""Threads that fsync log partitions.

In a file system with a journal each fsync waits for a commit of the journal, and concurrent fsyncs share one commit: many files
in a few threads take little longer than one file. A thread takes several queued jobs together, so that the share of Python
shrinks as the queue grows. Finished jobs are reported to the event loop in groups, with one wake-up per group.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar

from coordinator_core.segment_log.errors import PartitionFailed

PartitionT = TypeVar("PartitionT", contravariant=True)


class FlushedLog(Protocol[PartitionT]):
    """A log whose partitions can be flushed together, in any thread."""

    def flush(self, partitions: Sequence[PartitionT]) -> Sequence[PartitionFailed | None]:
        """Fsync these partitions; return each one's error or None."""


KeyT = TypeVar("KeyT")
#: Most jobs that a thread takes together.
_MOST_AT_ONCE = 8


class Flusher(Generic[KeyT]):
    """A pool of `threads` threads that flushes the partitions of `log`, until `close`."""

    def __init__(self, log: FlushedLog[KeyT], threads: int) -> None:
        self._log = log
        self._jobs: SimpleQueue[tuple[KeyT, asyncio.Future[None]] | None] = SimpleQueue()
        self._done: deque[tuple[asyncio.Future[None], BaseException | None]] = deque()
        self._is_reported = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads = [threading.Thread(target=self._work, name=f"flush {number}", daemon=True) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def flush(self, partition: KeyT) -> "asyncio.Future[None]":
        """Flush the records appended to the partition so far. The future raises the error of the flush. Event loop only."""
        self._loop = asyncio.get_running_loop()
        flushed: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put((partition, flushed))
        return flushed

    def close(self) -> None:
        """Finish the queued flushes and end the threads."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            jobs = [job]
            with suppress(Empty):
                while len(jobs) < _MOST_AT_ONCE and (more := self._jobs.get_nowait()) is not None:
                    jobs.append(more)
                if len(jobs) < _MOST_AT_ONCE:
                    # leave the end marker in the queue for the next thread
                    self._jobs.put(None)
            self._done.extend(self._flushed(jobs))
            if not self._is_reported and self._loop is not None:
                self._is_reported = True
                self._loop.call_soon_threadsafe(self._settle)

    def _flushed(
        self, jobs: list[tuple[KeyT, "asyncio.Future[None]"]]
    ) -> list[tuple["asyncio.Future[None]", BaseException | None]]:
        """Flush, and return each job with its error. An unexpected error counts for all jobs; the thread continues."""
        try:
            errors = self._log.flush([partition for partition, _ in jobs])
            return [(flushed, error) for (_, flushed), error in zip(jobs, errors, strict=True)]
        except Exception as error:
            return [(flushed, error) for _, flushed in jobs]

    def _settle(self) -> None:
        # reset first: a job that finishes later must schedule another wake-up
        self._is_reported = False
        while self._done:
            flushed, error = self._done.popleft()
            if flushed.done():
                continue
            if error is None:
                flushed.set_result(None)
            else:
                flushed.set_exception(error)
