"""The one poll loop of the tests: its result, its limits, and its message at the end."""

import ast
import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from eventually import NotReached, at_least, equal_to, eventually, eventually_async, eventually_awaited

TESTS = Path(__file__).parents[1]
ITSELF = TESTS / "support" / "eventually.py"


def test_the_value_that_was_awaited_is_returned() -> None:
    values = iter(["Empty", "PreparingRebalance", "Stable"])
    assert eventually("the group is stable", lambda: next(values), equal_to("Stable"), pause_seconds=0) == "Stable"
    numbers = count()
    assert eventually("three commits", lambda: next(numbers), at_least(3), pause_seconds=0) == 3


def test_no_progress_ends_the_wait_with_what_was_seen() -> None:
    expected = r"not within 0\.\d s: the group is stable; last value, in \d+ looks, unchanged for 0\.\d s: 'Empty'"
    with pytest.raises(NotReached, match=expected):
        eventually(
            "the group is stable",
            lambda: "Empty",
            equal_to("Stable"),
            patience_seconds=0.05,  # runs out: nothing changes
            pause_seconds=0.01,
        )


def test_progress_extends_the_patience_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = count()
    counted = eventually(
        "ten looks",
        lambda: next(looks),
        at_least(10),
        patience_seconds=0.05,  # runs out: but for the progress
        pause_seconds=0.01,
    )
    assert counted == 10
    monkeypatch.setattr("eventually.LIMIT_SECONDS", 0.1)
    with pytest.raises(NotReached, match="a number below zero"):
        eventually(
            "a number below zero",
            lambda: next(looks),
            lambda seen: seen < 0,
            patience_seconds=0.05,  # runs out: in spite of the progress
            pause_seconds=0.01,
        )


def test_a_probe_that_takes_cpu_time_is_called_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    used = iter([0.0, 0.05, 0.05, 2.0, 2.0])
    monkeypatch.setattr("eventually.time.sleep", pauses.append)
    monkeypatch.setattr("eventually._cpu_seconds", lambda: next(used))
    looks = count()
    assert eventually("two looks", lambda: next(looks), at_least(2)) == 2
    assert pauses == [pytest.approx(0.5), 1.0]


def test_what_can_no_longer_happen_is_not_awaited() -> None:
    with pytest.raises(NotReached, match=r"the tables follow; .*; given up: the job ended with 1"):
        eventually("the tables follow", lambda: False, unless=lambda: "the job ended with 1")


def test_an_event_loop_runs_meanwhile() -> None:
    async def waits() -> list[int]:
        seen: list[int] = []

        async def grows() -> None:
            for number in range(5):
                seen.append(number)
                await asyncio.sleep(0)

        async def size() -> int:
            return len(seen)

        growing = asyncio.create_task(grows())
        assert await eventually_awaited("three numbers", size, at_least(3), pause_seconds=0) == 3
        await eventually_async("five numbers", lambda: len(seen) == 5, pause_seconds=0)
        await growing
        with pytest.raises(NotReached, match="six numbers"):
            await eventually_awaited(
                "six numbers",
                size,
                at_least(6),
                patience_seconds=0.01,  # runs out: no sixth number comes
                pause_seconds=0.001,
            )
        return seen

    assert asyncio.run(waits()) == [0, 1, 2, 3, 4]


def poll_loops(path: Path) -> Iterator[str]:
    """Loops that probe, sleep and probe again, and those that assert a deadline."""
    for loop in ast.walk(ast.parse(path.read_text())):
        deadlines = (each for each in ast.walk(loop) if isinstance(each, ast.Assert) and called(each) & {"monotonic", "time"})
        if isinstance(loop, ast.While) and ("sleep" in called(loop) or any(deadlines)):
            yield f"{path.relative_to(TESTS)}:{loop.lineno}"


def called(node: ast.AST) -> set[str]:
    """Names of the methods and functions of modules that are called somewhere in it."""
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return {function.attr for function in calls if isinstance(function, ast.Attribute)}


def test_no_test_has_a_poll_loop_of_its_own() -> None:
    own = [loop for path in sorted(TESTS.rglob("*.py")) if path != ITSELF for loop in poll_loops(path)]
    assert own == []
