"""Times: Kafka has milliseconds since the epoch, the tables have timestamps in UTC with microseconds."""

import time
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

#: Type of the timestamp columns of the tables and of change rows.
TIMESTAMP = pa.timestamp("us", "UTC")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: The years 1 to 9999 in ms since the epoch: the times that every reader of the tables supports. Times of records outside of
#: this range are replaced by the nearest limit.
_EARLIEST_MS, _LATEST_MS = -62_135_596_800_000, 253_402_300_799_999


def now_ms() -> int:
    """Return the current time in ms since the epoch."""
    return time.time_ns() // 1_000_000


def at_ms(ms: int) -> datetime:
    """Convert milliseconds since the epoch to a timestamp, the nearest supported one."""
    return _EPOCH + timedelta(milliseconds=min(max(ms, _EARLIEST_MS), _LATEST_MS))


def to_time(ms: int | None) -> datetime | None:
    """Convert the time of a record as `at_ms` does; None and -1, which is Kafka's "no time", become None."""
    return None if ms is None or ms == -1 else at_ms(ms)


def to_ms(at: datetime | None) -> int:
    """Convert a timestamp to milliseconds since the epoch, None to -1."""
    return -1 if at is None else (at - _EPOCH) // timedelta(milliseconds=1)


def to_us(at: datetime) -> int:
    """Convert a timestamp (UTC if it has no zone) to microseconds since the epoch."""
    return ((at.replace(tzinfo=UTC) if at.tzinfo is None else at) - _EPOCH) // timedelta(microseconds=1)


def times_of(ms: pa.Array) -> pa.Array:
    """Convert a column as `to_time` does: -1 becomes null."""
    known = pc.if_else(pc.not_equal(ms, -1), ms, pa.scalar(None, pa.int64()))
    shown = pc.max_element_wise(pc.min_element_wise(known, _LATEST_MS, skip_nulls=False), _EARLIEST_MS, skip_nulls=False)
    return pc.multiply(shown, 1000).cast(TIMESTAMP)


def times_after(ms: pa.Array, distance_ms: int) -> pa.Array:
    """Times in ms that are `distance_ms`, at least 0, after others; at most the latest one that is supported."""
    limit = max(_EARLIEST_MS, _LATEST_MS - distance_ms)
    return pc.add(pc.min_element_wise(ms, limit, skip_nulls=False), min(distance_ms, _LATEST_MS - _EARLIEST_MS))


def ms_of(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column as `to_ms` does: null becomes -1."""
    return pc.fill_null(times.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()), -1)
