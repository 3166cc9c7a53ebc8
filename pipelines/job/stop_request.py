"""Request to stop a long-running operation."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """A stop request: set by any thread, never cleared."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._actions: list[Callable[[], None]] = []

    @property
    def is_requested(self) -> bool:
        """Whether a stop is requested."""
        return self._requested.is_set()

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
