"""One core for the tests of a worker that start no other process.

DataFusion and Arrow use a thread per core, which costs tables of some rows more than it gains: the files of tests/pipeline took a
fifth less CPU time with one core, and while the other workers use the other cores they are no slower.
"""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

#: Folders of tests that run in this process alone, but for those with one of the marks.
_ALONE = ("unit", "property", "conformance", "pipeline", "repository")
_WITH_OTHERS = frozenset({"spark", "broker", "browser"})


class OneCore:
    """A plugin of an xdist worker; `worker` is its number."""

    def __init__(self, worker: int) -> None:
        self._all = os.sched_getaffinity(0)
        self._own = {sorted(self._all)[worker % len(self._all)]}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Choose the cores before the fixtures of a test."""
        os.sched_setaffinity(0, self._own if is_alone(item.path, {mark.name for mark in item.iter_markers()}) else self._all)
        return (yield)


def is_alone(path: Path, marks: set[str]) -> bool:
    """Whether a test needs no core for another process."""
    folder = path.relative_to(Path(__file__).parents[1]).parts[0]
    return folder in _ALONE and not marks & _WITH_OTHERS
