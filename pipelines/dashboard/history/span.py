"""The span of time that a page shows: it ends at the moment of the page."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipelines.dashboard.state.errors import InvalidRequest

#: Spans that a page offers.
OFFERED = ("1h", "6h", "24h", "7d", "30d")
DEFAULT = "6h"
#: Defaults where there is less data, the shortest first.
SHORTER = ("15m", "1h")
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400}
_SPAN = re.compile(r"(?P<number>[0-9]{1,4})(?P<unit>[mhd])")
_LONGEST = timedelta(days=400)


@dataclass(frozen=True)
class Span:
    """A time span, its start included; `text` as in the query, such as `6h`."""

    start: datetime
    end: datetime
    text: str

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()


def span_until(end: datetime, text: str | None) -> Span:
    """The span of a text such as `90m`, `6h` or `7d` before `end`. Raises InvalidRequest for another text."""
    text = text or DEFAULT
    found = _SPAN.fullmatch(text)
    length = timedelta(seconds=int(found["number"]) * _SECONDS[found["unit"]]) if found else timedelta(0)
    if not timedelta(0) < length <= _LONGEST:
        raise InvalidRequest(f"invalid span {text!r}: use a number of minutes, hours or days up to 400d, such as 90m, 6h or 7d")
    return Span(end - length, end, text)
