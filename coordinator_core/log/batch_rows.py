"""Rows that describe batches, and the flags of records: what the compiled reader fills, for modules that need not load it."""

import numpy as np

#: Bits of `RecordColumns.flags`.
IS_TRANSACTIONAL = 1
IS_CONTROL = 2

#: One row per frame. `problem` concerns the frame, `record_problem` its records; 0 is none, other numbers are `Problem`s.
#: `records_start` and `records_end` enclose the uncompressed records.
BATCH = np.dtype(
    [
        ("position", "i8"),
        ("end", "i8"),
        ("base_offset", "i8"),
        ("last_offset", "i8"),
        ("base_timestamp", "i8"),
        ("max_timestamp", "i8"),
        ("producer_id", "i8"),
        ("records_start", "i8"),
        ("records_end", "i8"),
        ("count", "i4"),
        ("producer_epoch", "i2"),
        ("attributes", "i2"),
        ("magic", "u1"),
        ("problem", "u1"),
        ("crc_problem", "u1"),
        ("record_problem", "u1"),
    ]
)
