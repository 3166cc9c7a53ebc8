"""A request for log ends in the background, beside the batch that it belongs to."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class BackgroundRequest(Generic[T]):
    """One call in a thread of its own, begun at `asked_at_ms`."""

    def __init__(self, call: Callable[[], T], asked_at_ms: int) -> None:
        self.asked_at_ms = asked_at_ms
        self._call = call
        self._answer: T | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="log-ends", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._answer = self._call()
        except Exception as error:  # raised by `answer`, in the thread that wants the answer
            self._error = error

    @property
    def is_done(self) -> bool:
        """True if the call has returned or failed."""
        return not self._thread.is_alive()

    def answer(self) -> T:
        """Wait for the call. Returns its result, or raises its error."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer
