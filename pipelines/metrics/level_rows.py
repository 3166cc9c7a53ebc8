"""The rows that series are about, with the values of all metrics: one table per level, computed from a snapshot.

Unknown values are null. No value is negative, NaN or infinite.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import Int64s
from coordinator_core.codec.runs import begins_run, sums_of_runs
from coordinator_core.health import NONE
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC
from pipelines.lag.columns import codes
from pipelines.metrics.metric import Level
from pipelines.metrics.status_columns import group_status_columns, hot_partitions, partition_status_columns
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.tables import definitions

Floats = npt.NDArray[np.float64]

#: Unknown numbers, while they are in numpy.
_UNKNOWN = -1
_KEY = ("group_id", "topic", "partition")
#: A column of `members` that folders of layouts before 1.5 do not have.
_PROBLEM = "assignment_problem"
#: A column of `topic_partitions` that folders of layouts before 1.7 do not have.
_POLICY = "cleanup_policy"
#: Greatest values of the lag columns over partitions, by column of a group.
_GREATEST_SECONDS = {"max_lag_seconds": "lag_seconds", "lag_seconds_low": "lag_seconds_low", "stuck_seconds": "stuck_seconds"}


@dataclass(frozen=True)
class LevelRows:
    """Rows of a level. `lag` decides which rows remain when there are too many: the greatest one of the row, -1 if unknown."""

    rows: pa.Table
    lag: Int64s


class Positions:
    """The rows of `lag` as columns, with the sums and maxima over runs of rows."""

    def __init__(self, snapshot: MemorySnapshot, matching: Sequence[str] | None = None) -> None:
        """`matching`: groups with rows of their own partitions; None for all."""
        self._snapshot = snapshot
        self._table = snapshot.lag.table
        self._matching = matching

    @cached_property
    def lag(self) -> Int64s:
        """Lag of each row. A commit beyond the log end has an unknown one."""
        return numbers(self._table["lag"])

    @cached_property
    def _group_starts(self) -> Int64s:
        return self._snapshot.lag.starts[:-1]

    @cached_property
    def _topic_starts(self) -> Int64s:
        """First row of each pair of group and topic."""
        begins = begins_run(codes(self._table["topic"]))
        begins[self._group_starts] = True
        return np.flatnonzero(begins)

    def group_partitions(self) -> LevelRows:
        """A row per group and partition."""
        rows = self._of_matching(self._table)
        columns = {
            "group": rows["group_id"],
            "topic": rows["topic"],
            "partition": rows["partition"].cast(pa.string()),
            "member_host": pc.fill_null(rows["member_host"], ""),
            "consumer_id": pc.fill_null(rows["consumer_id"], ""),
            "client_id": pc.fill_null(rows["client_id"], ""),
            "group_offset": known(numbers(rows["group_offset"])),
            "lag": known(numbers(rows["lag"])),
            "latest_offset": known(numbers(rows["latest_offset"])),
            "lag_seconds": known_seconds(seconds(rows["lag_seconds"])),
            **partition_status_columns(self._snapshot, rows),
        }
        columns["hot_lag"] = pc.if_else(self._is_hot(rows), columns["lag"], None)
        return LevelRows(pa.table(columns), numbers(rows["lag"]))

    def _of_matching(self, rows: pa.Table) -> pa.Table:
        """The rows of the groups that have rows per partition."""
        if self._matching is None:
            return rows
        return rows.filter(pc.is_in(rows["group_id"], value_set=pa.array(self._matching, pa.string())))

    @cached_property
    def _hot(self) -> pa.Table:
        return hot_partitions(self._snapshot)

    def _is_hot(self, rows: pa.Table) -> pa.Array:
        """Whether the group of each row lags on its partition, which is hot."""
        hot = set(zip(*(self._hot[name].to_pylist() for name in _KEY), strict=True))
        if not hot:
            return pa.repeat(False, rows.num_rows)
        return pa.array([key in hot for key in zip(*(rows[name].to_pylist() for name in _KEY), strict=True)])

    def group_topics(self) -> LevelRows:
        """A row per group and topic with a commit."""
        starts = self._topic_starts
        rows = self._table.take(pa.array(starts))
        committed = numbers(self._table["group_offset"])
        lag = _sums(self.lag, starts)
        owned = self._table["consumer_id"].is_valid().to_numpy().astype(np.int64)
        columns = {
            "group": rows["group_id"],
            "topic": rows["topic"],
            "sum_lag": known(lag),
            "sum_offset": known(_sums(committed, starts)),
            "assigned_partitions": known(_sums(owned, starts)),
            "members": known(self._owners(starts)),
            "max_lag_ms": known_milliseconds(_reduced(np.fmax, seconds(self._table["lag_seconds"]), starts)),
        }
        return LevelRows(pa.table(columns), lag)

    def _owners(self, starts: Int64s) -> Int64s:
        """Number of members that own partitions in each run of rows."""
        if not len(starts):
            return starts
        run = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, self._table.num_rows)))
        owners = codes(self._table["consumer_id"])
        is_owned, size = owners != NONE, int(owners.max()) + 1
        # each pair of run and owner counts once
        pairs = np.unique(run[is_owned] * size + owners[is_owned])
        return np.bincount(pairs // size, minlength=len(starts))

    def groups(self) -> LevelRows:
        """A row per group, also for groups without partitions."""
        names = pa.array(self._snapshot.group_names, pa.string())
        values = self._of_groups()
        place = pc.index_in(names, value_set=self._snapshot.lag.groups)
        groups = self._snapshot.groups.table
        record = pc.index_in(names, value_set=groups["group_id"])
        columns: dict[str, Any] = {"group": names}
        columns |= {name: column.take(place) for name, column in values.items()}
        members = pc.fill_null(groups["member_count"].take(record).cast(pa.int64()), 0)
        columns["members"] = members
        occupied = pc.add(pc.fill_null(columns["owners"], 0), self._unreadable_members(names))
        columns["empty_members"] = pc.subtract(members, pc.min_element_wise(members, occupied))
        for name in ("state", "protocol", "protocol_type"):
            columns[name] = pc.fill_null(groups[name].take(record), "")
        columns["coordinator_id"] = self._coordinators(groups["log_partition"].take(record))
        columns |= group_status_columns(self._snapshot, names)
        columns["is_stable"] = pc.equal(columns["state"], "Stable").cast(pa.int64())
        return LevelRows(pa.table(columns), pc.fill_null(columns["sum_lag"], _UNKNOWN).to_numpy())

    def _coordinators(self, log_partitions: pa.ChunkedArray) -> pa.Array:
        """Node ids of the leaders of log partitions, as text; empty where unknown."""
        reported = self._snapshot.topic_partitions
        if reported is None:
            return pa.repeat("", len(log_partitions))
        of_log = reported.filter(pc.equal(reported["topic"], OFFSETS_TOPIC))
        place = pc.index_in(log_partitions.cast(pa.int32()), value_set=of_log["partition"].combine_chunks().cast(pa.int32()))
        return pc.fill_null(of_log["leader"].combine_chunks().take(place.combine_chunks()).cast(pa.string()), "")

    def _unreadable_members(self, groups: pa.Array) -> pa.Array:
        """Number of members of each group whose assignment cannot be read, so that they may have partitions."""
        members = self._snapshot.members.table
        if _PROBLEM not in members.column_names:
            return pa.array(np.zeros(len(groups), np.int64))
        counted = members.filter(members[_PROBLEM].is_valid()).group_by("group_id").aggregate([("group_id", "count")])
        place = pc.index_in(groups, value_set=counted["group_id"].combine_chunks())
        return pc.fill_null(counted["group_id_count"].combine_chunks().take(place), 0)

    def _of_groups(self) -> dict[str, pa.Array]:
        """Values of the groups that have partitions."""
        starts, table = self._group_starts, self._table
        committed = numbers(table["group_offset"])
        unknown = (self.lag == _UNKNOWN) & (committed != _UNKNOWN)
        lost = _sums(numbers(table["messages_lost"]), starts)
        found = {
            "max_lag": known(_greatest(self.lag, starts)),
            "sum_lag": known(_sums(self.lag, starts)),
            "unknown_partitions": _positive(_sums(unknown.astype(np.int64), starts)),
            "messages_lost": _positive(lost),
            "owners": known(self._owners(starts)),
            "retention_margin_seconds": known_seconds(_reduced(np.fmin, seconds(table["retention_margin_seconds"]), starts)),
        }
        for name, column in _GREATEST_SECONDS.items():
            found[name] = known_seconds(_reduced(np.fmax, seconds(table[column]), starts))
        for name in ("lag_seconds_low", "stuck_seconds"):
            found[name] = pc.if_else(pc.greater(found[name], 0), found[name], None)
        # a group at the end of its partitions loses nothing to retention
        found["retention_margin_seconds"] = pc.if_else(pc.greater(found["max_lag"], 0), found["retention_margin_seconds"], None)
        return found

    def topic_partitions(self) -> LevelRows:
        """A row per partition that some group has a position on, or that the cluster has reported."""
        table = self._table.select(["topic", "partition", "latest_offset", "earliest_offset", "lag"])
        ends = table.group_by(["topic", "partition"]).aggregate(
            [("latest_offset", "max"), ("earliest_offset", "max"), ("lag", "max")]
        )
        reported = self._snapshot.topic_partitions
        if reported is not None and reported.num_rows:
            ends = ends.join(_replica_facts(reported), ["topic", "partition"], join_type="full outer")
        if self._hot.num_rows:
            rates = self._hot.group_by(["topic", "partition"]).aggregate([("rate", "max")])
            ends = ends.join(rates, ["topic", "partition"])
        else:
            # most of the time: no join of all partitions
            ends = ends.append_column("rate_max", pa.nulls(ends.num_rows, pa.float64()))
        ends = ends.sort_by([("topic", "ascending"), ("partition", "ascending")])
        columns = {
            "topic": ends["topic"],
            "partition": ends["partition"].cast(pa.string()),
            "latest_offset": known(numbers(ends["latest_offset_max"])),
            "earliest_offset": known(numbers(ends["earliest_offset_max"])),
            "hot_rate_100": pc.round(pc.multiply(ends["rate_max"], 100)).cast(pa.int64()),
        }
        for name in ("leader", "replicas", "in_sync", "is_preferred", "is_under_replicated"):
            has = name in ends.column_names
            columns[name] = known(numbers(ends[name])) if has else pa.nulls(ends.num_rows, pa.int64())
        return LevelRows(pa.table(columns), numbers(ends["lag_max"]))

    def topics(self, partitions: LevelRows) -> LevelRows:
        """A row per topic, from the rows of its partitions."""
        rows = partitions.rows.append_column("rank", pa.array(partitions.lag))
        found = rows.group_by("topic", use_threads=False).aggregate(
            [("replicas", "count"), ("replicas", "max"), ("latest_offset", "sum"), ("earliest_offset", "sum"), ("rank", "max")]
        )
        columns = {
            "topic": found["topic"],
            "partitions": _positive(numbers(found["replicas_count"])),
            "replication_factor": pc.fill_null(found["replicas_max"].cast(pa.string()), ""),
            "latest_offset": found["latest_offset_sum"],
            "earliest_offset": found["earliest_offset_sum"],
        }
        columns["has_partitions"] = pc.if_else(columns["partitions"].is_valid(), 1, pa.scalar(None, pa.int64()))
        columns["cleanup_policy"] = self._cleanup_policies(found["topic"])
        columns["partition_count"] = pc.fill_null(columns["partitions"].cast(pa.string()), "")
        return LevelRows(pa.table(columns), numbers(found["rank_max"]))

    def share_partitions(self) -> LevelRows:
        """A row per share group and partition of which its coordinator has reported a start offset."""
        reported = self._snapshot.share_offsets
        if reported is None:
            reported = definitions.table("share_offsets").schema.empty_table()
        rows = self._of_matching(reported.filter(reported["partition"].is_valid()))
        lag = numbers(rows["lag"])
        columns = {
            "group": rows["group_id"],
            "topic": rows["topic"],
            "partition": rows["partition"].cast(pa.string()),
            "start_offset": known(numbers(rows["start_offset"])),
            "lag": known(lag),
        }
        return LevelRows(pa.table(columns), lag)

    def _cleanup_policies(self, topics: pa.ChunkedArray) -> pa.Array:
        """`cleanup.policy` of topics; empty where unknown, and in folders of layouts before 1.7."""
        reported = self._snapshot.topic_partitions
        if reported is None or _POLICY not in reported.column_names:
            return pa.repeat("", len(topics))
        place = pc.index_in(topics.combine_chunks(), value_set=reported["topic"].combine_chunks())
        return pc.fill_null(reported[_POLICY].combine_chunks().take(place), "")


def _replica_facts(reported: pa.Table) -> pa.Table:
    """Leader, replicas and in-sync replicas as numbers."""
    leader = reported["leader"].cast(pa.int64())
    replicas = pc.list_value_length(reported["replicas"]).cast(pa.int64())
    in_sync = pc.list_value_length(reported["in_sync_replicas"]).cast(pa.int64())
    lists = reported["replicas"].combine_chunks()
    first = pc.if_else(pc.greater(pc.list_value_length(lists), 0), lists.offsets.slice(0, len(lists)), None)
    preferred = lists.values.take(first).cast(pa.int64())
    return pa.table(
        {
            "topic": reported["topic"],
            "partition": reported["partition"],
            "leader": leader,
            "replicas": replicas,
            "in_sync": in_sync,
            "is_preferred": pc.fill_null(pc.equal(leader, preferred), False).cast(pa.int64()),
            "is_under_replicated": pc.less(in_sync, replicas).cast(pa.int64()),
        }
    )


def level_rows(snapshot: MemorySnapshot, levels: Sequence[Level], matching: Sequence[str] | None) -> Mapping[Level, LevelRows]:
    """Rows of the levels about groups and topics; `matching` limits the groups with rows per partition."""
    positions = Positions(snapshot, matching)
    partitions = positions.topic_partitions()
    makers = {
        Level.GROUP: positions.groups,
        Level.TOPIC: lambda: positions.topics(partitions),
        Level.GROUP_TOPIC: positions.group_topics,
        Level.TOPIC_PARTITION: lambda: partitions,
        Level.GROUP_PARTITION: positions.group_partitions,
        Level.SHARE_PARTITION: positions.share_partitions,
    }
    return {level: make() for level, make in makers.items() if level in levels}


def numbers(column: pa.ChunkedArray) -> Int64s:
    """A column as whole numbers, -1 for null and for values below 0."""
    found: Int64s = np.maximum(pc.fill_null(column.cast(pa.int64()), _UNKNOWN).to_numpy(), _UNKNOWN)
    return found


def seconds(column: pa.ChunkedArray) -> Floats:
    """A column as seconds, NaN for null."""
    found: Floats = pc.fill_null(column.cast(pa.float64()), float("nan")).to_numpy()
    return found


def known(values: Int64s) -> pa.Array:
    """Numbers with null instead of -1."""
    return pa.array(values, mask=values < 0)


def known_seconds(values: Floats) -> pa.Array:
    """Seconds rounded to milliseconds, null unless they are finite and not negative."""
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(values) & (values >= 0)
    return pa.array(np.round(np.where(usable, values, 0), 3), mask=~usable)


def known_milliseconds(values: Floats) -> pa.Array:
    """Seconds in whole milliseconds, null unless they are finite and not negative."""
    return pc.round(pc.multiply(known_seconds(values), 1000)).cast(pa.int64())


def _positive(values: Int64s) -> pa.Array:
    return pa.array(values, mask=values <= 0)


def _greatest(values: Int64s, starts: Int64s) -> Int64s:
    return np.maximum.reduceat(values, starts) if len(starts) else values[:0]


def _sums(values: Int64s, starts: Int64s) -> Int64s:
    """Sums of the known values of each run; -1 where none is known."""
    if not len(starts):
        return values[:0]
    is_known = values >= 0
    sums = sums_of_runs(np.where(is_known, values, 0), starts)
    return np.where(np.logical_or.reduceat(is_known, starts), sums, _UNKNOWN)


def _reduced(function: np.ufunc, values: Floats, starts: Int64s) -> Floats:
    """`function` over the known values of each run."""
    found: Floats = function.reduceat(values, starts) if len(starts) else values[:0]
    return found
