"""Times: Kafka has milliseconds since the epoch, the tables have timestamps in UTC with microseconds."""

import time
from datetime import UTC, datetime, timedelta

import pyarrow as pa

#: Type of the timestamp columns of the tables and of change rows.
TIMESTAMP = pa.timestamp("us", "UTC")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: The years 1 to 9999 in ms since the epoch: the times that every reader of the tables supports. Times of records outside of
#: this range are replaced by the nearest limit.
EARLIEST_MS, LATEST_MS = -62_135_596_800_000, 253_402_300_799_999


def now_ms() -> int:
    """Return the current time in ms since the epoch."""
    return time.time_ns() // 1_000_000


def at_ms(ms: int) -> datetime:
    """Convert milliseconds since the epoch to a timestamp, the nearest supported one."""
    return _EPOCH + timedelta(milliseconds=min(max(ms, EARLIEST_MS), LATEST_MS))


def to_time(ms: int | None) -> datetime | None:
    """Convert the time of a record as `at_ms` does; None and -1, which is Kafka's "no time", become None."""
    return None if ms is None or ms == -1 else at_ms(ms)


def to_ms(at: datetime | None) -> int:
    """Convert a timestamp to milliseconds since the epoch, None to -1."""
    return -1 if at is None else (at - _EPOCH) // timedelta(milliseconds=1)


def to_us(at: datetime) -> int:
    """Convert a timestamp (UTC if it has no zone) to microseconds since the epoch."""
    return ((at.replace(tzinfo=UTC) if at.tzinfo is None else at) - _EPOCH) // timedelta(microseconds=1)
