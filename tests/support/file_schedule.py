"""Order in which the files of a run start on xdist's workers: longest first, and one worker for each expensive fixture.

xdist's `loadfile` starts the files with most tests first, so that files with few long tests come last and one worker finishes
long after the others. Durations are those of `tests/durations.json`, which `pytest --record-durations` writes.

A session-scoped fixture (a JVM with Spark, a broker, a server of pages) exists once in each worker whose files need it. Files
that need one therefore go to the worker that has it, and to another one only when nothing else is left.
"""

import ast
import json
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

TESTS = Path(__file__).parents[1]
DURATIONS = TESTS / "durations.json"

#: Session-scoped fixtures of conftest.py files, most expensive first.
EXPENSIVE = ("spark", "broker", "server", "shop")
#: Shorter files are not listed in DURATIONS.
_LISTED_SECONDS = 2.0
#: The duration of a file that is not listed.
_SHORT_SECONDS = 1.0
#: With less than this left of a fixture's files, another worker does not create the fixture for them.
_SHARED_SECONDS = 30.0


@dataclass(frozen=True)
class WaitingFile:
    """A file that no worker has, with the seconds that it takes and the expensive fixture that it needs."""

    path: str
    seconds: float
    fixture: str | None


def expensive_fixture(source: str) -> str | None:
    """The expensive fixture that a test file requests, by an argument or by a mark, or None."""
    nodes = list(ast.walk(ast.parse(source)))
    requested = {argument.arg for node in nodes if isinstance(node, ast.FunctionDef) for argument in node.args.args}
    marks = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.usefixtures"]
    requested |= {ast.literal_eval(argument) for mark in marks for argument in mark.args}
    return next((fixture for fixture in EXPENSIVE if fixture in requested), None)


def next_file(waiting: Sequence[WaitingFile], own: Set[str], taken: Set[str]) -> WaitingFile | None:
    """The file that a worker runs next, or None if it may end.

    `own` are the expensive fixtures of this worker, `taken` those of all workers. The order of preference: files of an own
    fixture; the fixture with most work left, for a worker that has none; files without one; any other fixture that is not taken;
    files of another worker's fixture, if there are enough of them. Of these the longest.
    """
    left: dict[str | None, float] = {}
    for file in waiting:
        left[file.fixture] = left.get(file.fixture, 0) + file.seconds
    free = [fixture for fixture in left if fixture is not None and fixture not in taken]
    most = [max(free, key=left.__getitem__)] if free and not own else []
    shared = [fixture for fixture in left if left[fixture] >= _SHARED_SECONDS]
    for wanted in (own, most, [None], free, shared):
        files = [file for file in waiting if file.fixture in wanted]
        if files:
            return max(files, key=lambda file: file.seconds)
    return None


class LongestFirst(LoadFileScheduling):
    """xdist's scheduling by file, with `next_file` as the choice of the next one."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._root = config.rootpath
        self._seconds: dict[str, float] = json.loads(DURATIONS.read_text(encoding="utf-8")) if DURATIONS.exists() else {}
        self._files: dict[str, WaitingFile] = {}
        self._fixtures: dict[WorkerController, set[str]] = {}

    def _assign_work_unit(self, node: WorkerController) -> None:
        own = self._fixtures.setdefault(node, set())
        # the fixtures of a worker that crashed or ends are free again
        running = [fixtures for worker, fixtures in self._fixtures.items() if worker in self.nodes and not worker.shutting_down]
        file = next_file([self._file(path) for path in self.workqueue], own, set[str]().union(*running))
        if file is None:
            node.shutdown()
            return
        if file.fixture:
            own.add(file.fixture)
        self.workqueue.move_to_end(file.path, last=False)
        super()._assign_work_unit(node)

    def _file(self, path: str) -> WaitingFile:
        if path not in self._files:
            fixture = expensive_fixture((self._root / path).read_text(encoding="utf-8"))
            self._files[path] = WaitingFile(path, self._seconds.get(path, _SHORT_SECONDS), fixture)
        return self._files[path]


class DurationRecord:
    """A plugin that writes DURATIONS at the end of a run: seconds in setup, call and teardown, by file."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of a test."""
        path = report.nodeid.partition("::")[0]
        self._seconds[path] = self._seconds.get(path, 0) + report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the files in the order of their names, so that a change is easy to read."""
        listed = {path: round(seconds) for path, seconds in sorted(self._seconds.items()) if seconds >= _LISTED_SECONDS}
        DURATIONS.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
