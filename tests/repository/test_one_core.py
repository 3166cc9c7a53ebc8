"""Which tests of a worker have one core (`one_core.py`), and that they have it."""

import os
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from one_core import OneCore, is_alone

TESTS = Path(__file__).parents[1]
ALL = os.sched_getaffinity(0)


@pytest.fixture(autouse=True)
def cores() -> Generator[None]:
    yield
    os.sched_setaffinity(0, ALL)


@pytest.mark.parametrize(
    ("file", "marks", "expected"),
    [
        ("unit/lag/test_x.py", set(), True),
        ("pipeline/test_x.py", {"long"}, True),
        ("pipeline/test_x.py", {"spark"}, False),
        ("broker/test_x.py", set(), False),
        ("e2e/test_x.py", {"long"}, False),
    ],
)
def test_tests_that_start_no_other_process(file: str, marks: set[str], expected: bool) -> None:
    assert is_alone(TESTS / file, marks) is expected


@pytest.mark.parametrize("worker", [0, 1, 5])
def test_workers_take_turns(worker: int) -> None:
    plugin = OneCore(worker)
    seen = []
    for folder in ("unit", "broker", "unit"):
        item: Any = SimpleNamespace(path=TESTS / folder / "test_x.py", iter_markers=lambda: ())
        running = plugin.pytest_runtest_protocol(item)
        next(running)
        seen.append(os.sched_getaffinity(0))
        running.close()
    cores = sorted(seen[1])
    assert seen[0] == seen[2] == {cores[worker % len(cores)]}


def test_all_cores_are_those_of_the_process() -> None:
    os.sched_setaffinity(0, {min(ALL)})
    item: Any = SimpleNamespace(path=TESTS / "broker" / "test_x.py", iter_markers=lambda: ())
    next(OneCore(3).pytest_runtest_protocol(item))
    assert os.sched_getaffinity(0) == {min(ALL)}
