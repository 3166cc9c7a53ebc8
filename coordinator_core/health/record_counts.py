"""Data records that a Fetch has counted after a committed offset, an input of lag."""

from typing import NamedTuple


class RecordCount(NamedTuple):
    """Data records in `[from_offset, to_offset)`: without control batches, aborted transactions, records lost or compacted.

    `first_offset` is the offset of the first one; None if there is none. A Fetch of the range with read_committed counts them.
    """

    from_offset: int
    to_offset: int
    records: int
    first_offset: int | None = None


#: `data_lag` of at most this many offsets is counted by a Fetch. Greater lags are not made of markers alone.
COUNTED_LAG = 1_000
