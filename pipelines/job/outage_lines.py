"""Progress of a job during an outage of its brokers: one line at the start and one at the end.

Several parts of a job notice the same outage: the workers that read the log, the samples, the reader of transactions, each with a
line of its own. Only the first line of an outage is passed on, and one at its end.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coordinator_core.sources.kafka_topic import ANSWERING, WAITING
from pipelines.runtime.progress import Progress

#: Lines of parts that an outage stops, with its reason.
_BEGINS = re.compile(
    rf"(?:{WAITING}[^:]*|end offsets cannot be sampled[^:]*|transactions cannot be read): (.*)"
    r"|settings of topics .*? cannot be read \((.*)\), so their"
)
#: Reasons of other kinds, such as a missing permission, are no outage.
_UNREACHABLE = re.compile(
    r"no broker answers|broker \d+, leader of|connection refused|closed the connection|no leader for|Timeout"
)
#: Their lines afterwards.
_ENDS = re.compile(rf"{ANSWERING}|end offsets are sampled again|transactions are read again")


class OutageLines:
    """Passes lines on to `progress`, and of an outage the first line and one about its end. For any thread."""

    def __init__(self, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress = progress
        self._clock = clock
        self._lock = threading.Lock()
        self._since: float | None = None
        #: Lines of parts that have not reported their end: that of the outage was reported.
        self._held = 0

    def __call__(self, line: str) -> None:
        """Pass a line on, unless the outage in it was reported."""
        with self._lock:
            if _ENDS.match(line) and (self._since is not None or self._held):
                self._end()
            elif (begin := _BEGINS.match(line)) and (line.startswith(WAITING) or _UNREACHABLE.search(line)):
                self._begin(begin[1] or begin[2])
            else:
                self._progress(line)

    def _begin(self, reason: str) -> None:
        self._held += 1
        if self._since is None:
            self._since = self._clock()
            self._progress(f"waiting for the brokers: {reason}")

    def _end(self) -> None:
        self._held = max(0, self._held - 1)
        if self._since is not None:
            self._progress(f"the brokers answer again, after {self._clock() - self._since:.0f} s")
            self._since = None


class _ToProgress(logging.Handler):
    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.WARNING)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        self._progress(record.getMessage())


@contextmanager
def one_line_per_outage(progress: Progress) -> Iterator[Progress]:
    """The progress of a job that follows the log; warnings of the core's readers in this process are lines of it too."""
    lines = OutageLines(progress)
    logger, handler = logging.getLogger("coordinator_core"), _ToProgress(lines)
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
