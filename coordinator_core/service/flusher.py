"""Threads that force log partitions to the disk.

Each fsync of a file system with a journal waits for a commit of the journal, and fsyncs that wait at the same time share one:
many files in parallel take little longer than one. What is done is told to the event loop together, with one wake-up.
"""

import asyncio
import threading
from collections import deque
from queue import SimpleQueue

from coordinator_core.service.ports import PartitionLog

_Job = tuple[PartitionLog, "asyncio.Future[None]"]


class Flusher:
    """`threads` of them, until `close`. Made and called in the event loop that is told."""

    def __init__(self, threads: int) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._done: deque[tuple[asyncio.Future[None], BaseException | None]] = deque()
        self._told = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads = [threading.Thread(target=self._work, name=f"flush {number}", daemon=True) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def flush(self, log: PartitionLog) -> "asyncio.Future[None]":
        """What was appended so far; has what `PartitionLog.flush` raises."""
        self._loop = asyncio.get_running_loop()
        flushed: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put((log, flushed))
        return flushed

    def close(self) -> None:
        """Returns when everything is done."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            log, flushed = job
            error: BaseException | None = None
            try:
                log.flush()
            except Exception as failure:
                error = failure
            self._done.append((flushed, error))
            if not self._told and self._loop is not None:
                self._told = True
                self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        # first of all: what is done from here on is told again
        self._told = False
        while self._done:
            flushed, error = self._done.popleft()
            if flushed.done():
                continue
            if error is None:
                flushed.set_result(None)
            else:
                flushed.set_exception(error)
