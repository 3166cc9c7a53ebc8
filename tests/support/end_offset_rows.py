"""Rows of a table of samples as `EndOffsetSample`."""

import pyarrow as pa

from coordinator_core.health import EndOffsetSample


def samples_from(table: pa.Table) -> list[EndOffsetSample]:
    """The rows in their order; the inverse of `samples_table`."""
    ms = [table[name].cast(pa.int64()).to_pylist() for name in ("asked_at", "answered_at")]
    return [
        EndOffsetSample(
            asked_at_ms=asked // 1000,
            answered_at_ms=answered // 1000,
            **row,
        )
        for row, asked, answered in zip(table.drop_columns(["asked_at", "answered_at"]).to_pylist(), *ms, strict=True)
    ]
