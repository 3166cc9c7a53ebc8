"""Past states: one load for many requests, limits of loads and of memory."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from patience import PATIENCE_SECONDS

from pipelines.dashboard.state.errors import NotLoaded
from pipelines.dashboard.state.state_cache import StateCache

THREADS = 10


@dataclass
class State:
    """A state of a number of bytes."""

    nbytes: int = 10


def test_concurrent_requests_share_one_load() -> None:
    kept = StateCache[State](100)
    loads: list[int] = []
    release = threading.Event()

    def load() -> State:
        loads.append(1)
        assert release.wait(PATIENCE_SECONDS)
        return State()

    with ThreadPoolExecutor(THREADS) as threads:
        requests = [threads.submit(kept.state, ("east", 1), load) for _ in range(THREADS)]
        release.set()
        assert len({id(request.result()) for request in requests}) == 1
    assert loads == [1]


def test_an_error_reaches_all_requests_and_is_not_kept() -> None:
    kept = StateCache[State](100)
    loads, entered = threading.Semaphore(0), threading.Event()

    def fail() -> State:
        entered.set()
        assert loads.acquire(timeout=PATIENCE_SECONDS)
        raise OSError("unreadable")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(kept.state, ("east", 1), fail)
        assert entered.wait(PATIENCE_SECONDS)
        second = threads.submit(kept.state, ("east", 1), fail)
        loads.release(2)
        for request in (first, second):
            with pytest.raises(OSError, match="unreadable"):
                request.result()
    state = State()
    assert kept.state(("east", 1), lambda: state) is state


def test_too_many_loads() -> None:
    kept = StateCache[State](100, max_loads=1)
    entered, release = threading.Event(), threading.Event()

    def load() -> State:
        entered.set()
        assert release.wait(PATIENCE_SECONDS)
        return State()

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(kept.state, ("east", 1), load)
        assert entered.wait(PATIENCE_SECONDS)
        with pytest.raises(NotLoaded, match="1 past states are being loaded: try again in a few seconds"):
            kept.state(("east", 2), State)
        release.set()
        running.result()
    kept.state(("east", 2), State)


def test_the_least_recently_used_state_is_removed() -> None:
    kept = StateCache[State](25)
    first = kept.state(("east", 1), State)
    second = kept.state(("east", 2), State)
    assert kept.state(("east", 1), State) is first
    kept.state(("west", 1), State)
    assert kept.state(("east", 1), State) is first
    assert kept.state(("east", 2), State) is not second


def test_a_state_above_the_limit_is_kept_alone() -> None:
    kept = StateCache[State](25)
    large = kept.state(("east", 1), lambda: State(1_000))
    assert kept.state(("east", 1), State) is large
    kept.state(("east", 2), State)
    assert kept.state(("east", 1), State) is not large


def test_growth_of_a_kept_state_counts() -> None:
    kept = StateCache[State](25)
    first, second = kept.state(("east", 1), State), kept.state(("east", 2), State)
    second.nbytes = 20
    assert kept.state(("east", 2), State) is second
    assert kept.state(("east", 1), State) is not first
