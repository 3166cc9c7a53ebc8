"""Executors that a standalone cluster announces in the log of the driver's JVM: granted, failed and lost ones.

Spark has no other interface for an executor that ends before it registers. conf/spark-log4j2.properties lets these lines through.
"""

import re

_GRANTED = re.compile(r"Executor added: (\S+) on ")
_ENDED = re.compile(r"Executor updated: (\S+) is now (?:EXITED|FAILED|KILLED|LOST)\s*(.*)$")
#: An executor that ends twice before the first one registers has a reason that a further start does not remove.
_FAILURES = 2


class ExecutorLog:
    """Counts of executors. Without lines, as after `spark-submit`, all are 0."""

    def __init__(self) -> None:
        self._granted: set[str] = set()
        self._ended: dict[str, str] = {}

    def note(self, line: str) -> None:
        """Read a line of the log."""
        if found := _GRANTED.search(line):
            self._granted.add(found[1])
        elif found := _ENDED.search(line):
            self._ended[found[1]] = found[2].strip(" ()") or "ended"

    @property
    def expected(self) -> int:
        """Number of executors that were granted and have not ended."""
        return len(self._granted - self._ended.keys())

    @property
    def is_failing(self) -> bool:
        """Whether repeated starts have failed."""
        return len(self._ended) >= _FAILURES

    @property
    def last_failure(self) -> str:
        """Spark's words about the last executor that ended."""
        return next(reversed(self._ended.values()), "")
