"""Request to stop a long-running operation."""

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

#: A signal to a process group ends child processes before the thread that handles it here has set the request.
_SIGNAL_SECONDS = 2.0

#: No signal has this number.
_END = 0


class StopRequest:
    """A stop request: set by any thread, never cleared."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._lock = threading.Lock()
        self._actions: list[Callable[[], None]] = []

    @property
    def is_requested(self) -> bool:
        """Whether a stop is requested."""
        return self._requested.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait until a stop is requested, at most this long; whether it is."""
        return self._requested.wait(seconds)

    def explains_the_end_of_a_child(self) -> bool:
        """Whether a child process has ended because a stop was requested, by a signal to the whole process group.

        The request may be some time away, until another thread has handled the signal: this waits for it.
        """
        return self.wait(_SIGNAL_SECONDS)

    def request(self) -> None:
        """Request a stop after the work in progress, and run the actions of `on_request`."""
        with self._lock:
            self._requested.set()
            actions, self._actions = self._actions, []
        for action in actions:
            action()

    def on_request(self, action: Callable[[], None]) -> None:
        """Register `action`, called by the thread that requests the stop; immediately if it is requested already."""
        with self._lock:
            if not self.is_requested:
                self._actions.append(action)
                return
        action()


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Within the context SIGTERM and SIGINT request the stop, in a thread of their own. Only the main thread may use it.

    A handler in Python interrupts the main thread between any two instructions, also while it holds the lock of an event that
    it begins to wait for. A handler that sets the event then waits for a lock that nobody releases. So the handlers here do
    nothing, and the thread gets the numbers of the signals from the file descriptor to which Python's handler in C writes
    them.
    """
    stop = StopRequest()
    received, sent = socket.socketpair()
    sent.setblocking(False)  # `set_wakeup_fd` demands it
    thread = threading.Thread(target=_request_on_signals, args=(stop, received), name="signals", daemon=True)
    thread.start()
    outer_fd = signal.set_wakeup_fd(sent.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(outer_fd)
        sent.send(bytes([_END]))
        thread.join()
        received.close()
        sent.close()


def _request_on_signals(stop: StopRequest, received: socket.socket) -> None:
    while (number := received.recv(1)[0]) != _END:
        if number in _SIGNALS:
            stop.request()
