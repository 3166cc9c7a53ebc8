"""Request to stop a long-running operation."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

#: A signal to a process group ends child processes before the thread that handles it here has set the request.
_SIGNAL_SECONDS = 2.0


class StopRequest:
    """A stop request: set by any thread, never cleared."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._actions: list[Callable[[], None]] = []

    @property
    def is_requested(self) -> bool:
        """Whether a stop is requested."""
        return self._requested.is_set()

    def explains_the_end_of_a_child(self) -> bool:
        """Whether a child process has ended because a stop was requested, by a signal to the whole process group.

        The request may be some time away, until another thread has handled the signal: this waits for it.
        """
        return self._requested.wait(_SIGNAL_SECONDS)

    def request(self) -> None:
        """Request a stop after the work in progress, and run the actions of `on_request`."""
        self._requested.set()
        while self._actions:
            self._actions.pop()()

    def on_request(self, action: Callable[[], None]) -> None:
        """Register `action`, called by the thread that requests the stop; immediately if it is requested already."""
        self._actions.append(action)
        if self.is_requested:
            self.request()


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Within the context SIGTERM and SIGINT request the stop. Only the main thread may use it."""
    stop = StopRequest()
    before = {number: signal.signal(number, lambda *_: stop.request()) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
