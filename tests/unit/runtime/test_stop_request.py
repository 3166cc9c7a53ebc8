"""Stop requests: by signals, and as the reason of the end of a child process, which a signal to a process group reaches too."""

import os
import signal
import threading

import pytest
from patience import PATIENCE_SECONDS

from pipelines.runtime.stop_request import StopRequest, stop_on_signals


def test_a_request_that_comes_a_moment_later_explains_the_end_of_a_child() -> None:
    stop = StopRequest()
    threading.Timer(0.1, stop.request).start()
    assert not stop.is_requested
    assert stop.explains_the_end_of_a_child()


def test_without_a_request_the_end_of_a_child_is_an_error() -> None:
    assert not StopRequest().explains_the_end_of_a_child()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_does_not_wait_for_a_lock_of_the_main_thread(number: signal.Signals) -> None:
    """A wait for an event holds a lock for a moment; a handler in the main thread that sets the event would never return."""
    lock, acquired = threading.Lock(), list[bool]()
    handlers = signal.getsignal(number), signal.set_wakeup_fd(-1)
    with stop_on_signals() as stop:
        stop.on_request(lambda: acquired.append(lock.acquire(timeout=PATIENCE_SECONDS)))
        with lock:
            os.kill(os.getpid(), number)
            assert stop.wait(PATIENCE_SECONDS)
            assert acquired == []
    assert acquired == [True]
    assert (signal.getsignal(number), signal.set_wakeup_fd(-1)) == handlers


def test_other_signals_request_nothing() -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with stop_on_signals() as stop:
            os.kill(os.getpid(), signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.wait(PATIENCE_SECONDS)
        with stop_on_signals() as stop:
            os.kill(os.getpid(), signal.SIGUSR1)
        assert not stop.is_requested
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_action_runs_once() -> None:
    stop, ran = StopRequest(), list[str]()
    stop.on_request(lambda: ran.append("before"))
    stop.request()
    stop.request()
    stop.on_request(lambda: ran.append("after"))
    assert ran == ["before", "after"]
