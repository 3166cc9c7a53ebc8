"""The end of a process that makes no progress any more, so that its supervisor can start it again."""

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Self

from pipelines.runtime.progress import Progress


class Watchdog:
    """Calls `on_hung` once if `alive` was not called for `limit_seconds`, between `__enter__` and `__exit__`; 0 for no limit.

    `on_hung` gets the last line of progress, empty without one. It runs in a thread of its own: the others may hang.
    """

    def __init__(self, limit_seconds: float, on_hung: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._on_hung, self._clock = limit_seconds, on_hung, clock
        self._line = ""
        self._alive_at = clock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self.alive()
        if self._limit:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._limit:
            self._thread.join()

    def alive(self) -> None:
        """Report progress. Any thread may call it."""
        self._alive_at = self._clock()

    def watching(self, progress: Progress) -> Progress:
        """Wrap `progress`: each of its lines is a sign of life."""

        def report(line: str) -> None:
            self._line = line
            self.alive()
            progress(line)

        return report

    def _watch(self) -> None:
        while not self._ended.wait(max(0.0, self._alive_at + self._limit - self._clock())):
            if self._clock() - self._alive_at >= self._limit:
                self._on_hung(self._line)
                return


def end_process() -> None:
    """Print where each thread is to standard error, and end this process with exit code 1.

    Nothing is cleaned up, which may hang too. What a killed process leaves is removed by the next one.
    """
    faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
    sys.stderr.flush()
    os._exit(1)
