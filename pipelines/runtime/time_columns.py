"""Columns of times in ms since the epoch, converted as `timestamps` converts single ones."""

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.runtime.timestamps import EARLIEST_MS, LATEST_MS, TIMESTAMP


def times_of(ms: pa.Array) -> pa.Array:
    """Convert a column as `to_time` does: -1 becomes null."""
    known = pc.if_else(pc.not_equal(ms, -1), ms, pa.scalar(None, pa.int64()))
    shown = pc.max_element_wise(pc.min_element_wise(known, LATEST_MS, skip_nulls=False), EARLIEST_MS, skip_nulls=False)
    return pc.multiply(shown, 1000).cast(TIMESTAMP)


def times_after(ms: pa.Array, distance_ms: int) -> pa.Array:
    """Times in ms that are `distance_ms`, at least 0, after others; at most the latest one that is supported."""
    limit = max(EARLIEST_MS, LATEST_MS - distance_ms)
    return pc.add(pc.min_element_wise(ms, limit, skip_nulls=False), min(distance_ms, LATEST_MS - EARLIEST_MS))


def ms_of(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column as `to_ms` does: null becomes -1."""
    return pc.fill_null(times.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()), -1)
