"""Times of a page, all in UTC."""

from datetime import UTC, datetime, timedelta

from pipelines.dashboard.formatting.quantities import UNKNOWN, duration


def iso(at: datetime | None) -> str:
    """A time for `datetime` attributes and links: `2026-03-01T12:00:05Z`, with milliseconds if it has some."""
    if at is None:
        return ""
    at = at.astimezone(UTC)
    text = at.isoformat(timespec="milliseconds" if at.microsecond else "seconds")
    return text.replace("+00:00", "Z")


def field_time(at: datetime) -> str:
    """A time to edit: `2026-03-01 12:00:05`, rounded up, so that it is not before what was shown."""
    return f"{at + timedelta(microseconds=-at.microsecond % 1_000_000):%Y-%m-%d %H:%M:%S}"


def full(at: datetime | None) -> str:
    """Date and time: `1 Mar 2026, 12:00:05`."""
    return UNKNOWN if at is None else f"{at.day} {at:%b %Y, %H:%M:%S}"


def clock(at: datetime | None, now: datetime | None = None) -> str:
    """The time of the day: `12:00:05`; with the date if it is of another day than `now`."""
    if at is None:
        return UNKNOWN
    if now is None or at.date() == now.date():
        return f"{at:%H:%M:%S}"
    year = "" if at.year == now.year else f" {at.year}"
    return f"{at.day} {at:%b}{year} {at:%H:%M}"


def since(at: datetime | None, now: datetime) -> str:
    """Time since an event: `8 min 4 s ago`; `just now` for one after `now`, since clocks differ."""
    if at is None:
        return UNKNOWN
    seconds = (now - at).total_seconds()
    return f"{duration(seconds)} ago" if seconds >= 0 else "just now"


def until(at: datetime | None, now: datetime) -> str:
    """Time until something due: `in 5 h 12 min`; `due 2 min ago` once it has passed."""
    if at is None:
        return UNKNOWN
    seconds = (at - now).total_seconds()
    return f"in {duration(seconds)}" if seconds >= 0 else f"due {duration(-seconds)} ago"


def after(at: datetime, seconds: float) -> datetime:
    """The time that many seconds later."""
    return at + timedelta(seconds=seconds)
