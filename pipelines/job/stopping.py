"""Request to stop a long-running operation."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopping:
    """A stop request: set by any thread, never cleared."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._actions: list[Callable[[], None]] = []

    @property
    def is_requested(self) -> bool:
        """Whether a stop is requested."""
        return self._requested.is_set()

    def tell(self) -> None:
        """Request a stop after the work in progress, and run the actions of `then`."""
        self._requested.set()
        while self._actions:
            self._actions.pop()()

    def then(self, action: Callable[[], None]) -> None:
        """Register `action`, called by the thread that requests the stop; immediately if it is requested already."""
        self._actions.append(action)
        if self.is_requested:
            self.tell()


@contextmanager
def requested_by_signals() -> Iterator[Stopping]:
    """Within the context SIGTERM and SIGINT request the stop. Only the main thread may use it."""
    stopping = Stopping()
    before = {number: signal.signal(number, lambda *_: stopping.tell()) for number in _SIGNALS}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
