"""Blocking calls that run in threads, one at a time, and stop at each step that a test decides about."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from patience import LIMIT_SECONDS


class Crashed(BaseException):
    """Ends a call of a process that is no more; nothing of the product catches it."""


class SteppedCall:
    """A call in a thread. `waits_for` is what its step asks for; `step` answers it and returns at the next one, or at the end.

    After the end `result` or `error` is set.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self.waits_for: object = None
        self.is_over = False
        #: Whether the test lets it wait for a thread, or for the machine.
        self.is_stalled = False
        self.result: Any = None
        self.error: BaseException | None = None
        self._work = work
        self._answer: object = None
        self._is_killed = False
        self._may_go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def step(self, answer: object = None) -> None:
        """Let it go on with this answer."""
        self._answer = answer
        self._may_go.release()
        assert self._stopped.acquire(timeout=LIMIT_SECONDS)

    def kill(self) -> None:
        """End it where it stands, as the end of its process does."""
        self._is_killed = True
        while not self.is_over:
            self.step()

    def wait(self, waits_for: object) -> object:
        """Called in the thread: stop here, and return the answer."""
        self.waits_for = waits_for
        self._stopped.release()
        self._may_go.acquire()
        if self._is_killed:
            raise Crashed
        return self._answer

    def _run(self) -> None:
        self._may_go.acquire()
        _CURRENT.call = self
        try:
            if not self._is_killed:
                self.result = self._work()
        except BaseException as error:
            self.error = error
        self.waits_for = None
        self.is_over = True
        self._stopped.release()


_CURRENT = threading.local()


def wait(waits_for: object) -> object:
    """Stop the call that this thread runs, and return the answer of its next step."""
    call: SteppedCall = _CURRENT.call
    return call.wait(waits_for)


class SteppedLock:
    """A lock between stepped calls: one that has to wait stops, and can be let go on when the lock is free."""

    def __init__(self) -> None:
        self.is_held = False

    def __enter__(self) -> None:
        while self.is_held:
            wait(self)
        self.is_held = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.is_held = False
