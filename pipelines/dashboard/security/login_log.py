"""The log of failed logins: no secrets, and a bounded number of lines."""

import ipaddress
from collections.abc import Callable

from pipelines.runtime.progress import Progress

#: Lines within `_WINDOW_SECONDS`; further failures are counted.
_LINES = 10
_WINDOW_SECONDS = 60.0


class LoginLog:
    """Reports failed logins. Its lines have fixed words, addresses and names from the file of credentials only."""

    def __init__(self, progress: Progress, clock: Callable[[], float]) -> None:
        self._progress, self._clock = progress, clock
        self._window_start = clock()
        self._lines = 0
        self._omitted = 0

    def failed(self, reason: str, client: str | None) -> None:
        """Report a failed login. `reason` contains nothing that the client sent."""
        now = self._clock()
        if now - self._window_start >= _WINDOW_SECONDS:
            if self._omitted:
                self._progress(f"login failed: {self._omitted} more times")
            self._window_start, self._lines, self._omitted = now, 0, 0
        if self._lines >= _LINES:
            self._omitted += 1
            return
        self._lines += 1
        self._progress(f"login failed: {reason}, client {_address(client)}")


def _address(client: str | None) -> str:
    """The address, if it is one: a proxy may forward any text."""
    try:
        return str(ipaddress.ip_address(client or ""))
    except ValueError:
        return "unknown"
