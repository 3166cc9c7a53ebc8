"""Arrow columns as integers, and the rows of one table in the order of another one. Times in ms; NONE for null."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec import runs
from coordinator_core.codec.arrays import Int64s
from coordinator_core.health import NONE
from coordinator_core.health.sample_columns import integers
from pipelines.query.engine import Snapshot

#: Key of the tables of lag and status.
KEY = ["group_id", "topic", "partition"]


def milliseconds(column: Any) -> Int64s:
    """A timestamp column in ms."""
    us = integers(column)
    return np.where(us == NONE, NONE, us // 1000)


def timestamps(ms: Int64s) -> Any:
    """An Arrow array of timestamps with null for NONE."""
    return pa.array(np.where(ms == NONE, 0, ms) * 1000, mask=ms == NONE).cast(pa.timestamp("us", "UTC"))


def select(snapshot: Snapshot, sql: str) -> pa.Table:
    """The rows of a query."""
    return snapshot.query(sql)


def codes(column: pa.ChunkedArray) -> Int64s:
    """A number for each distinct value, NONE for null."""
    return integers(column.combine_chunks().dictionary_encode().indices)


def row_numbers(keys: pa.Table, of: pa.Table, names: list[str] = KEY) -> Int64s:
    """The row of `of` with the key of each row of `keys`; -1 for none. Both have the columns `names`.

    Keys are unique in `of`. In tables of versions before layout 1.6 a key may have two rows: the first one counts.
    """
    if not keys.num_rows:
        return np.zeros(0, np.int64)
    keys, of = keys.select(names), of.select(names)
    if keys.equals(of):
        return np.arange(of.num_rows)
    numbered = of.append_column("row", pa.array(np.arange(of.num_rows)))
    if keys.num_rows < of.num_rows // 2:
        # a join would hash all rows of `of`
        numbered = numbered.filter(pc.is_in(of[names[0]], keys[names[0]].unique()))
    wanted = keys.append_column("at", pa.array(np.arange(keys.num_rows)))
    joined = wanted.join(numbered, names, join_type="left outer").select(["at", "row"])
    if joined.num_rows > keys.num_rows:
        joined = joined.group_by("at").aggregate([("row", "min")]).rename_columns(["at", "row"])
    joined = joined.sort_by("at")
    rows: Int64s = joined["row"].fill_null(-1).to_numpy()
    return rows


def starts_of_runs(*columns: Any) -> Int64s:
    """The rows at which one of the columns, of Arrow or numpy, differs from the row before; at the end the number of rows."""
    return runs.starts_of_runs(*(each if isinstance(each, np.ndarray) else codes(each) for each in columns))
