"""Times of a page, all in UTC.

The tables have the nearest time of the years 1 to 9999 for a time of a record outside of them. A time in the year 9999 does not
come.
"""

from datetime import UTC, datetime, timedelta

from coordinator_core.health.timed_text import marked
from pipelines.dashboard.formatting.quantities import UNKNOWN, duration
from pipelines.runtime.timestamps import to_ms

NEVER = "never"
#: No clock is this far ahead of another one.
_FUTURE_SECONDS = 86_400
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
#: Times at and beyond the limits of the tables.
_FIRST_TEXT, _LAST_TEXT = "before the year 1", "after the year 9999"
_FIRST_END = _EARLIEST + timedelta(milliseconds=1)
_LAST_START = _LATEST - timedelta(milliseconds=1)


def iso(at: datetime | None) -> str:
    """A time for `datetime` attributes and links: `2026-03-01T12:00:05Z`, with milliseconds if it has some."""
    if at is None:
        return ""
    at = at.astimezone(UTC)
    text = at.isoformat(timespec="milliseconds" if at.microsecond else "seconds")
    return text.replace("+00:00", "Z")


def field_time(at: datetime) -> str:
    """A time to edit: `2026-03-01 12:00:05`, rounded up, so that it is not before what was shown."""
    rounded = after(at, -at.microsecond % 1_000_000 / 1_000_000)
    return rounded.replace(tzinfo=None).isoformat(" ", "seconds")


def full(at: datetime | None) -> str:
    """Date and time: `1 Mar 2026, 12:00:05`."""
    return UNKNOWN if at is None else _limit(at) or f"{at.day} {at:%b} {at.year}, {at:%H:%M:%S}"


def clock(at: datetime | None, now: datetime | None = None) -> str:
    """The time of the day: `12:00:05`; with the date if it is of another day than `now`."""
    if at is None:
        return UNKNOWN
    if now is None or at.date() == now.date():
        return f"{at:%H:%M:%S}"
    year = "" if at.year == now.year else f" {at.year}"
    return _limit(at) or f"{at.day} {at:%b}{year} {at:%H:%M}"


def minute(at: datetime) -> str:
    """The time of the day for the ends of an axis: `14:00`."""
    return f"{at:%H:%M}"


def since(at: datetime | None, now: datetime) -> str:
    """Time since an event: `8 min 4 s ago`; `just now` for one a little after `now`, since clocks differ."""
    if at is None:
        return UNKNOWN
    seconds = (now - at).total_seconds()
    if seconds < -_FUTURE_SECONDS:
        return "in the future"
    return f"{duration(seconds)} ago" if seconds >= 0 else "just now"


def marked_clock(at: datetime, now: datetime | None = None) -> str:
    """The same, marked for a sentence that `timed_text` makes."""
    return marked(clock(at, now), to_ms(at))


def between(after: datetime | None, before: datetime, now: datetime) -> str:
    """An interval, marked: `between 12:00:05 and 12:00:35`; `before 12:00:35` without a start."""
    end = marked_clock(before, now)
    return f"before {end}" if after is None else f"between {marked_clock(after, now)} and {end}"


def until(at: datetime | None, now: datetime) -> str:
    """Time until something due: `in 5 h 12 min`; `due 2 min ago` once it has passed; `never` if it does not come."""
    if at is None:
        return UNKNOWN
    if not comes(at):
        return NEVER
    seconds = (at - now).total_seconds()
    return f"in {duration(seconds)}" if seconds >= 0 else f"due {duration(-seconds)} ago"


def after(at: datetime, seconds: float) -> datetime:
    """The time that many seconds later, the nearest one of the years 1 to 9999."""
    try:
        return at + timedelta(seconds=seconds)
    except OverflowError:
        return _LATEST if seconds > 0 else _EARLIEST


def comes(at: datetime) -> bool:
    """False for a time that does not come."""
    return at.year < _LATEST.year


def margin(seconds: float, now: datetime) -> str:
    """A time that is left: `5 h 12 min`; `never` if its end does not come."""
    return duration(seconds) if comes(after(now, seconds)) else NEVER


def _limit(at: datetime) -> str:
    """Words for a limit of the tables, which stands for all times beyond it; empty for any other time."""
    if at < _FIRST_END:
        return _FIRST_TEXT
    return _LAST_TEXT if at >= _LAST_START else ""
