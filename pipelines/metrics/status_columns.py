"""Columns of group and partition statuses, for the rows of groups and of their partitions. All null without these tables."""

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.query.snapshots.memory_snapshot import MemorySnapshot

#: Numbers of statuses in Burrow's metrics. burrow_exporter counts from 1.
BURROW_NUMBERS = {"NOTFOUND": 0, "OK": 1, "WARN": 2, "ERR": 3, "STOP": 4, "STALL": 5, "REWIND": 6}
_OK = "OK"
_HOT = pa.schema({"group_id": pa.string(), "topic": pa.string(), "partition": pa.int32(), "rate": pa.float64()})
# `empty_table` would import pandas
_NO_HOT = pa.Table.from_batches([], _HOT)


def group_status_columns(snapshot: MemorySnapshot, groups: pa.Array) -> dict[str, pa.Array]:
    """`status`, `rule` and `has_finding` by our rules, statuses and lag by those of Burrow."""
    found = snapshot.group_status
    if found is None:
        empty = pa.repeat("", len(groups))
        unknown = pa.nulls(len(groups), pa.int64())
        return {"status": empty, "rule": empty, "has_finding": unknown, **_unknown(len(groups)), "burrow_lag": unknown}
    rows = found.table.take(pc.index_in(groups, value_set=found.table["group_id"].combine_chunks()))
    status = rows["status"]
    return {
        "status": pc.fill_null(status, ""),
        "rule": pc.fill_null(rows["rule"], ""),
        "has_finding": pc.if_else(pc.not_equal(status, _OK), 1, pa.scalar(None, pa.int64())),
        **_numbers(rows["burrow_status"]),
        "burrow_lag": rows["total_lag"],
    }


def partition_status_columns(snapshot: MemorySnapshot, rows: pa.Table) -> dict[str, pa.Array]:
    """Status of partitions by Burrow's rules, and the last commit of their window.

    Unlike Burrow, also where the window is not full: it has one commit per batch, so that of a schedule fills for hours.
    """
    found = snapshot.partition_status
    key = ["group_id", "topic", "partition"]
    if found is None:
        return {**_unknown(rows.num_rows), "burrow_offset": pa.nulls(rows.num_rows, pa.int64())}
    values = found.table.select([*key, "status", "end_offset"])
    keys = rows.select(key).append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    joined = keys.join(values, key, join_type="left outer").sort_by("row")
    return {**_numbers(joined["status"]), "burrow_offset": joined["end_offset"]}


def hot_partitions(snapshot: MemorySnapshot) -> pa.Table:
    """Group, topic and partition of each finding of `hot_partition`, with its `rate`."""
    found = snapshot.group_status
    if found is None or not found.table.num_rows:
        return _NO_HOT
    lists = found.table["findings"].combine_chunks()
    if lists.type.value_type.get_field_index("rate") < 0:
        # of a layout that does not have the rule
        return _NO_HOT
    findings = lists.flatten()
    hot = pc.fill_null(pc.equal(pc.struct_field(findings, "rule"), "hot_partition"), False)
    groups = found.table["group_id"].combine_chunks().take(pc.list_parent_indices(lists))
    columns = {name: pc.struct_field(findings, name) for name in ("topic", "partition", "rate")}
    return pa.table({"group_id": groups, **columns}).filter(hot).cast(_HOT)


def _numbers(statuses: pa.ChunkedArray) -> dict[str, pa.Array]:
    """Numbers of Burrow and of burrow_exporter. NOTFOUND has no series."""
    names = pa.array(BURROW_NUMBERS, pa.string())
    number = pc.index_in(statuses, value_set=names).cast(pa.int64())
    known = pc.if_else(pc.greater(number, 0), number, None)
    return {"burrow_status": known, "exporter_status": pc.add(known, 1)}


def _unknown(rows: int) -> dict[str, pa.Array]:
    return dict.fromkeys(("burrow_status", "exporter_status"), pa.nulls(rows, pa.int64()))
