"""The lines of `run_progress.py` about a long run of tests."""

from types import SimpleNamespace

import pytest
from run_progress import RunProgress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_has_counts_and_the_tests_that_run_for_long() -> None:
    clock = Clock()
    progress = RunProgress(lambda _: None, clock)
    progress.pytest_xdist_node_collection_finished([f"test_{n}" for n in range(1_200)])
    for test, failed in (("test_0", False), ("test_1", True)):
        progress.pytest_runtest_logstart(test)
        progress.pytest_runtest_logreport(report(failed))
        progress.pytest_runtest_logfinish(test)
    assert progress.line() == "0 min: 2 of 1,200 tests, 1 failed"
    progress.pytest_runtest_logstart("test_2")
    clock.now = 40
    progress.pytest_runtest_logstart("test_3")
    clock.now = 95
    assert progress.line() == "2 min: 2 of 1,200 tests, 1 failed; for more than a minute: test_2 (95 s)"


def report(failed: bool) -> pytest.TestReport:
    made: pytest.TestReport = SimpleNamespace(failed=failed)  # type: ignore[assignment]  # only this attribute is read
    return made
