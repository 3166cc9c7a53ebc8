"""The coordinator's clock: system time without jumps."""

from collections.abc import Callable

#: Largest relative change of speed while the clock corrects a jump of the system time.
_MOST_CORRECTION = 0.1


class SteadyClock:
    """Wall time in ms that advances with the monotonic clock.

    When the system time jumps, sessions and rebalances must neither stall nor all time out together. This clock runs up to a
    tenth faster or slower until it agrees with the system time again. `wall_seconds` and `monotonic_seconds` are `time.time`
    and `time.monotonic`.
    """

    def __init__(self, wall_seconds: Callable[[], float], monotonic_seconds: Callable[[], float]) -> None:
        self._wall = wall_seconds
        self._monotonic = monotonic_seconds
        self._read_at = monotonic_seconds()
        self._seconds = wall_seconds()

    def now_ms(self) -> int:
        """Return the time; it never decreases."""
        read_at = self._monotonic()
        elapsed = read_at - self._read_at
        ahead = self._wall() - (self._seconds + elapsed)
        most = elapsed * _MOST_CORRECTION
        self._seconds += elapsed + max(-most, min(ahead, most))
        self._read_at = read_at
        return int(self._seconds * 1000)
