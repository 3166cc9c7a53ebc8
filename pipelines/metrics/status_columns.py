"""Columns of group and partition statuses, for the rows of groups and of their partitions. All null without these tables."""

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.query.snapshots.memory_snapshot import MemorySnapshot

#: Numbers of statuses in Burrow's metrics.
BURROW_NUMBERS = {"NOTFOUND": 0, "OK": 1, "WARN": 2, "ERR": 3, "STOP": 4, "STALL": 5, "REWIND": 6}
_OK = "OK"
_COMPLETE = 1.0


def group_status_columns(snapshot: MemorySnapshot, groups: pa.Array) -> dict[str, pa.Array]:
    """`status`, `rule` and `has_finding` by our rules, status and lag by those of Burrow."""
    found = snapshot.group_status
    if found is None:
        empty = pa.repeat("", len(groups))
        unknown = pa.nulls(len(groups), pa.int64())
        return {"status": empty, "rule": empty, "has_finding": unknown, "burrow_status": unknown, "burrow_lag": unknown}
    rows = found.table.take(pc.index_in(groups, value_set=found.table["group_id"].combine_chunks()))
    status = rows["status"]
    return {
        "status": pc.fill_null(status, ""),
        "rule": pc.fill_null(rows["rule"], ""),
        "has_finding": pc.if_else(pc.not_equal(status, _OK), 1, pa.scalar(None, pa.int64())),
        "burrow_status": _numbers(rows["burrow_status"]),
        "burrow_lag": rows["total_lag"],
    }


def partition_status_columns(snapshot: MemorySnapshot, rows: pa.Table) -> dict[str, pa.Array]:
    """Status of partitions by Burrow's rules; as in Burrow, status and offset only where the window is full."""
    found = snapshot.partition_status
    key = ["group_id", "topic", "partition"]
    if found is None:
        unknown = pa.nulls(rows.num_rows, pa.int64())
        return {"burrow_status": unknown, "burrow_offset": unknown}
    values = found.table.filter(pc.equal(found.table["complete"], _COMPLETE)).select([*key, "status", "end_offset"])
    keys = rows.select(key).append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    joined = keys.join(values, key, join_type="left outer").sort_by("row")
    return {"burrow_status": _numbers(joined["status"]), "burrow_offset": joined["end_offset"]}


def _numbers(statuses: pa.ChunkedArray) -> pa.Array:
    names = pa.array(BURROW_NUMBERS, pa.string())
    # NOTFOUND has no series
    number = pc.index_in(statuses, value_set=names).cast(pa.int64())
    return pc.if_else(pc.greater(number, 0), number, None)
