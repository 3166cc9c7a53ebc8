"""The request to end something that runs on and on."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopping:
    """Told once, by any thread, for good."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._actions: list[Callable[[], None]] = []

    @property
    def is_requested(self) -> bool:
        """Is the end wanted?"""
        return self._told.is_set()

    def tell(self) -> None:
        """The end is wanted, as soon as what is under way is done."""
        self._told.set()
        while self._actions:
            self._actions.pop()()

    def then(self, action: Callable[[], None]) -> None:
        """Calls `action` at once when told, in the thread that tells."""
        self._actions.append(action)
        if self.is_requested:
            self.tell()


@contextmanager
def requested_by_signals() -> Iterator[Stopping]:
    """While it is open, SIGTERM and SIGINT tell. For the main thread."""
    stopping = Stopping()
    before = {number: signal.signal(number, lambda *_: stopping.tell()) for number in _SIGNALS}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
