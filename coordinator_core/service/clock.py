"""The time that the coordinator is told: the system's, without its jumps."""

from collections.abc import Callable

#: How far the clock may run fast or slow while it makes up for a jump of the system's.
_MOST_CORRECTION = 0.1


class SteadyClock:
    """Wall time in ms that goes on with the monotonic clock.

    When the system's time jumps, back or forth, sessions and rebalances must neither stop nor all end at once: this clock runs up
    to a tenth fast or slow until it is right again. `wall_seconds` and `monotonic_seconds` are `time.time` and `time.monotonic`.
    """

    def __init__(self, wall_seconds: Callable[[], float], monotonic_seconds: Callable[[], float]) -> None:
        self._wall = wall_seconds
        self._monotonic = monotonic_seconds
        self._read_at = monotonic_seconds()
        self._seconds = wall_seconds()

    def now_ms(self) -> int:
        """Never less than before."""
        read_at = self._monotonic()
        elapsed = read_at - self._read_at
        ahead = self._wall() - (self._seconds + elapsed)
        most = elapsed * _MOST_CORRECTION
        self._seconds += elapsed + max(-most, min(ahead, most))
        self._read_at = read_at
        return int(self._seconds * 1000)
