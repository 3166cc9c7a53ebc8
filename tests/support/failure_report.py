"""A report of the failed tests of a run, as JSON, for `tools/gate.py`: `pytest --failures FILE`."""

import json
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
        if report.failed:
            self._failures.setdefault(report.nodeid, {"test": report.nodeid, "phase": report.when, "reason": _reason(report)})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep files that cannot be collected."""
        if report.failed:
            self._failures[report.nodeid] = {"test": report.nodeid, "phase": COLLECTION, "reason": _reason(report)}

    def pytest_sessionfinish(self) -> None:
        """Write the report, also of a run without failures."""
        self._file.write_text(json.dumps(list(self._failures.values())), encoding="utf-8")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The message of the exception, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext.rstrip().rpartition("\n")[2]
    return " ".join(text.split())[:300]
