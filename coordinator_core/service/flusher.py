"""Threads that force log partitions to the disk.

Each fsync of a file system with a journal waits for a commit of the journal, and fsyncs that wait at the same time share one:
many files in a few threads take little longer than one. A thread takes what has gathered while all were busy, so that the more
there is to do, the less of it is Python; what is done is told to the event loop together, with one wake-up.
"""

import asyncio
import threading
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue

from coordinator_core.service.log_interface import CoordinatorLog

_Job = tuple[int, "asyncio.Future[None]"]
#: Files that one thread takes at once.
_MOST_AT_ONCE = 8


class Flusher:
    """For the partitions of `log`, with so many `threads` until `close`."""

    def __init__(self, log: CoordinatorLog, threads: int) -> None:
        self._log = log
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._done: deque[tuple[asyncio.Future[None], BaseException | None]] = deque()
        self._told = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads = [threading.Thread(target=self._work, name=f"flush {number}", daemon=True) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def flush(self, partition: int) -> "asyncio.Future[None]":
        """What was appended to the partition so far. The future has the error if there is one. In the event loop."""
        self._loop = asyncio.get_running_loop()
        flushed: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put((partition, flushed))
        return flushed

    def close(self) -> None:
        """Returns when everything is done."""
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
                    # the end is for whoever asks next
                    self._jobs.put(None)
            self._done.extend(self._flushed(jobs))
            if not self._told and self._loop is not None:
                self._told = True
                self._loop.call_soon_threadsafe(self._settle)

    def _flushed(self, jobs: list[_Job]) -> list[tuple["asyncio.Future[None]", BaseException | None]]:
        """The error of each job; an error that should not be is that of all. The thread goes on in any case."""
        try:
            errors = self._log.flush([partition for partition, _ in jobs])
            return [(flushed, error) for (_, flushed), error in zip(jobs, errors, strict=True)]
        except Exception as error:
            return [(flushed, error) for _, flushed in jobs]

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
