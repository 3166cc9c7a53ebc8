"""A limit for events that a client can cause at will: some lines of each cause a minute, the others are counted."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

#: Lines of a cause within this time.
LINES, SECONDS = 5, 60.0
#: Causes that are remembered; the one that was quiet for longest is forgotten first.
CAUSES = 1_000


@dataclass
class _Cause:
    started: float
    lines: int = 0
    omitted: int = 0


class RepeatedEvents:
    """Which events are logged. `now` is a clock in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._causes: OrderedDict[Hashable, _Cause] = OrderedDict()

    def omitted(self, cause: Hashable) -> int | None:
        """The number of events of a cause that were omitted since its last line; None if this one is omitted, too."""
        now = self._now()
        found = self._causes.get(cause)
        if found is None or now - found.started >= SECONDS:
            found = self._causes[cause] = _Cause(now, omitted=0 if found is None else found.omitted)
            if len(self._causes) > CAUSES:
                self._causes.popitem(last=False)
        self._causes.move_to_end(cause)
        if found.lines == LINES:
            found.omitted += 1
            return None
        found.lines += 1
        before, found.omitted = found.omitted, 0
        return before
