"""A report of the failed tests of a run, as JSON, for `tools/gate.py`: `pytest --failures FILE`."""

import json
import sys
from pathlib import Path

import pytest

#: The phase of a file that cannot be collected. Those of tests are pytest's: setup, call, teardown.
COLLECTION = "collect"


class FailureReport:
    """A plugin of the process that reports, which with xdist is the one that runs no tests."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._failures: dict[str, dict[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the first failure of a test: a failed teardown is a consequence more often than a cause."""
        if report.failed and report.nodeid not in self._failures:
            self._add(report, str(report.when))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep files that cannot be collected."""
        if report.failed:
            self._add(report, COLLECTION)

    def pytest_sessionfinish(self) -> None:
        """Write the report, also of a run without failures."""
        self._file.write_text(json.dumps(list(self._failures.values())), encoding="utf-8")

    def _add(self, report: pytest.TestReport | pytest.CollectReport, phase: str) -> None:
        self._failures[report.nodeid] = {"test": report.nodeid, "phase": phase, "reason": _reason(report)}
        # at once: the traceback follows at the end of the run, which may be many minutes away
        print(f"\nfailed: {report.nodeid}: {_reason(report)}", file=sys.__stderr__, flush=True)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The message of the exception, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext.rstrip().rpartition("\n")[2]
    return " ".join(text.split())[:300]
