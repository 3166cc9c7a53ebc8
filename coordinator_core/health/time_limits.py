"""Saturated arithmetic of times and durations: a time outside of the years 1 to 9999 becomes the nearest limit.

Logs and settings have numbers of 64 bits. Clients commit with the expiry 2**63 - 1 for "for ever", and Kafka Streams sets it as
`retention.ms`. A time in the year 9999 does not come: texts print it as "never". Times in ms.
"""

import math

import numpy as np

from coordinator_core.codec.arrays import Int64s, Numbers

#: The years 1 to 9999, which every reader of the tables supports, in ms since the epoch.
EARLIEST_MS, LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
#: Start of the year 9999.
NEVER_FROM_MS = 253_370_764_800_000
#: Retention of records that are never deleted (`Long.MAX_VALUE`). So is one of LATEST_MS or more: no record is from before 1970.
UNLIMITED = 2**63 - 1


def within_limits(ms: float) -> int:
    """The nearest time within the limits, in whole milliseconds. Raises ValueError for NaN."""
    if math.isnan(ms):
        raise ValueError("NaN is not a time: use milliseconds since the epoch")
    return round(min(max(ms, EARLIEST_MS), LATEST_MS))


def later(at_ms: int, seconds: float) -> int:
    """The time that many seconds after another one, within the limits."""
    return within_limits(at_ms + 1000 * seconds)


def comes(ms: int) -> bool:
    """False for a time that does not come."""
    return ms < NEVER_FROM_MS


def seconds_left(now_ms: Int64s) -> Numbers:
    """Seconds from times until the latest one: the longest margin, which means never."""
    left: Numbers = (LATEST_MS - np.minimum(now_ms, LATEST_MS)) / 1000
    return left


def difference(high: Int64s, low: Int64s) -> Int64s:
    """`high - low`, the nearest number of 64 bits where the difference has more."""
    with np.errstate(over="ignore"):
        wrapped: Int64s = high - low
    # only operands with different signs overflow, and then the result has the sign of `low`
    overflows = ((high ^ low) & (high ^ wrapped)) < 0
    limits = np.iinfo(np.int64)
    found: Int64s = np.where(overflows, np.where(high < 0, limits.min, limits.max), wrapped)
    return found
