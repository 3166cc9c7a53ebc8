"""Lines about a long run of tests, so that the log of a run that is ended from outside says where it was.

12 min: 3,120 of 8,095 tests, 2 failed; for more than a minute: tests/broker/test_outages.py::test_a_restart (95 s)
"""

import sys
import threading
import time
from collections.abc import Callable, Sequence

import pytest

#: Pause between two lines.
PAUSE_SECONDS = 120.0
#: Tests that have been running for longer are named.
_NAMED_SECONDS = 60.0


class RunProgress:
    """A plugin of the process that reports: xdist reports to it when a worker begins and ends a test. `clock` is in s."""

    def __init__(self, write: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._begun = clock()
        self._tests = self._done = self._failed = 0
        self._running: dict[str, float] = {}
        self._ended = threading.Event()

    @classmethod
    def of_a_run(cls) -> "RunProgress":
        """A plugin that writes to standard error, past pytest's capture."""
        return cls(lambda line: print(f"\n{line}", file=sys.__stderr__, flush=True))

    def pytest_sessionstart(self) -> None:
        """Begin to write lines."""
        threading.Thread(target=self._report, name="run-progress", daemon=True).start()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Every worker collects the same tests."""
        self._tests = len(ids)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins, with its fixtures."""
        self._running[nodeid] = self._clock()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count failures of any phase."""
        self._failed += report.failed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test has ended, with its fixtures."""
        self._running.pop(nodeid, None)
        self._done += 1

    def pytest_sessionfinish(self) -> None:
        """End the lines."""
        self._ended.set()

    def line(self) -> str:
        """The line of now."""
        now = self._clock()
        counts = f"{(now - self._begun) / 60:.0f} min: {self._done:,} of {self._tests:,} tests, {self._failed} failed"
        long = {test: now - since for test, since in dict(self._running).items() if now - since > _NAMED_SECONDS}
        named = ", ".join(f"{test} ({seconds:.0f} s)" for test, seconds in long.items())
        return f"{counts}; for more than a minute: {named}" if named else counts

    def _report(self) -> None:
        while not self._ended.wait(PAUSE_SECONDS):
            self._write(self.line())
