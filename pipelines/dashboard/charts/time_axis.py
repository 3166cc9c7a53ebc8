"""A horizontal axis of time with round ticks."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_STEPS = (
    *(timedelta(seconds=each) for each in (1, 5, 15, 30)),
    *(timedelta(minutes=each) for each in (1, 2, 5, 10, 15, 20, 30)),
    *(timedelta(hours=each) for each in (1, 2, 3, 6, 12)),
    *(timedelta(days=each) for each in (1, 2, 7, 14, 30, 60, 90)),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Tick(NamedTuple):
    """A round time of an axis with its place and label, in UTC."""

    x: float
    label: str
    at: datetime


@dataclass(frozen=True)
class TimeAxis:
    """Times between `start` and `end` as x between `left` and `right`."""

    start: datetime
    end: datetime
    left: float
    right: float

    def x(self, at: datetime) -> float:
        """The place of a time, to a tenth; times outside of the axis are at its ends."""
        share = (at - self.start) / (self.end - self.start)
        return round(self.left + min(1.0, max(0.0, share)) * (self.right - self.left), 1)

    def ticks(self, most: int = 7) -> list[Tick]:
        """Round times with their labels, far enough from the ends for their labels."""
        step = next((step for step in _STEPS if (self.end - self.start) / step <= most), _STEPS[-1])
        at = _EPOCH + step * (-((_EPOCH - self.start) // step))
        found = []
        while at <= self.end:
            found.append(Tick(self.x(at), _label(at, step), at))
            at += step
        return found


def _label(at: datetime, step: timedelta) -> str:
    if step >= timedelta(days=1) or (at.hour == 0 and at.minute == 0 and at.second == 0):
        return f"{at.day} {at:%b}"
    return f"{at:%H:%M:%S}" if step < timedelta(minutes=1) else f"{at:%H:%M}"
