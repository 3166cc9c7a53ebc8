"""A number of records that may be read or written now, at a steady rate."""

import threading
import time

#: Records that a client handles at once without a rate.
MOST_RECORDS = 500


class Allowance:
    """A token bucket. `rate` is records a second; None: no limit. A change of the rate begins with an empty bucket."""

    def __init__(self, rate: float | None) -> None:
        self._lock = threading.Lock()
        self.set(rate)

    def set(self, rate: float | None) -> None:
        """Change the rate."""
        with self._lock:
            self._rate, self._tokens, self._at = rate, 0.0, time.monotonic()

    def now(self) -> int:
        """Records that may be handled now."""
        with self._lock:
            if self._rate is None:
                return MOST_RECORDS
            now = time.monotonic()
            self._tokens = min(self._tokens + self._rate * (now - self._at), MOST_RECORDS)
            self._at = now
            return int(self._tokens)

    def spend(self, records: int) -> None:
        """Count records that were handled."""
        with self._lock:
            self._tokens -= records
