"""The position that a batch reached in the log, in time."""

from datetime import datetime
from typing import NamedTuple, Self


class ReachedPosition(NamedTuple):
    """Time and distance to the end of the log.

    - `read_until`: all records that were appended before this time are read; None if unknown.
    - `records_behind`: records that were left to read; None if unknown, 0 at the end of the log.
    """

    read_until: datetime | None = None
    records_behind: int | None = None

    def after(self, before: Self) -> Self:
        """This position, reached after another one: what was read before remains read."""
        times = [each for each in (before.read_until, self.read_until) if each is not None]
        return self._replace(read_until=max(times, default=None))
