"""The demonstration waits as long as there is progress."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pipelines.examples.demo import waiting
from pipelines.examples.demo.waiting import DemoError, WaitProgress, wait_for


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "STALL_SECONDS", 0.2)


def seen(done_after: int, *, stalls_at: int = 1_000) -> Callable[[], Awaitable[WaitProgress]]:
    observations = 0

    async def observe() -> WaitProgress:
        nonlocal observations
        observations += 1
        reached = min(observations, stalls_at)
        return WaitProgress(observations > done_after, reached, f"last batch: {reached}, {done_after - reached} records behind")

    return observe


def test_slow_progress_is_waited_for() -> None:
    # five times as long as a stall may last
    asyncio.run(wait_for("the tables did not catch up", seen(20), 0.05))


def test_what_is_done_is_not_waited_for() -> None:
    asyncio.run(wait_for("the tables did not catch up", seen(0), 3_600))


def test_a_stall_ends_with_what_was_reached() -> None:
    stalled = wait_for("the tables did not catch up with the log", seen(20, stalls_at=3), 0.05, "; see DIR/job.log")
    expected = (
        r"^the tables did not catch up with the log: no progress for 0.2 s \(last batch: 3, 17 records behind\); see DIR/job.log$"
    )
    with pytest.raises(DemoError, match=expected):
        asyncio.run(stalled)


def test_a_value_that_rises_and_falls_is_no_progress() -> None:
    numbers = [2, 1] * 100

    async def observe() -> WaitProgress:
        return WaitProgress(False, numbers.pop(), "2 of 3 partitions")

    with pytest.raises(DemoError, match="no progress"):
        asyncio.run(wait_for("the groups did not settle", observe, 0.01))
