"""Rules about partitions, and the totals of groups, in columns over all positions of a sample. Times in ms.

The evidence of a group is limited to the partitions for which a rule may fire.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.codec.runs import begins_run, sums_of_runs
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import (
    BURROW_RULES,
    NONE,
    CommitPoint,
    CommitWindow,
    Finding,
    HotColumns,
    LagMethod,
    LagReason,
    PartitionEvidence,
    PartitionLag,
    PartitionOwner,
    SampleColumns,
    Status,
    StatusSettings,
    UnconsumedTopic,
    WindowColumns,
    burrow_rule_numbers,
    lags_behind_others,
    ok_finding,
)
from coordinator_core.health.sample_columns import integers, nullable
from pipelines.lag.columns import KEY, milliseconds, starts_of_runs, timestamps
from pipelines.lag.inputs.open_transactions import COLUMNS, from_row
from pipelines.lag.tables.status_rows import status_schema
from pipelines.lag.tables.unconsumed_positions import UnconsumedPositions
from pipelines.runtime.timestamps import to_ms

_STATUSES = tuple(Status)
_LAG_COLUMNS = [
    *("lag", "lag_seconds_low", "lag_seconds_high", "lag_method", "lag_reason", "messages_lost", "blocked_by_transaction"),
    *("retention_margin_seconds", "stuck_seconds", "sampled_at"),
    *("lag_slope_per_second", "produce_rate", "falls_behind_since", "falls_behind_since_is_latest"),
    *COLUMNS,
]
_SEVERITY_OF_RULE = np.array([rule.status.severity for rule in BURROW_RULES])


@dataclass(frozen=True)
class SampledPositions:
    """All positions at a sample: keys with owners, rows of `lag`, windows, and the samples that both are computed from.

    `moved_at_ms` is the time of the commit that moved each offset to its value, NONE for unknown. `unconsumed` has the positions
    that no member can read: our rules leave them out, those of Burrow do not. `hot` has the hot partitions of the samples.
    """

    positions: pa.Table
    lag: pa.Table
    windows: WindowColumns
    moved_at_ms: Int64s
    partition: Int64s
    samples: SampleColumns
    at_ms: int
    unconsumed: UnconsumedPositions
    hot: HotColumns


class PartitionRules:
    """Rules over `sampled`. `expires_at_ms` has the expiry of offsets that expire soon, NONE for others."""

    def __init__(self, sampled: SampledPositions, settings: StatusSettings, expires_at_ms: Int64s) -> None:
        self._sampled, self._settings, self._expires_at_ms = sampled, settings, expires_at_ms
        self._windows = windows = sampled.windows
        self._bounds = starts_of_runs(sampled.positions["group_id"])
        self.names: list[str] = sampled.positions["group_id"].take(pa.array(self._bounds[:-1])).to_pylist()
        self._number = {name: number for number, name in enumerate(self.names)}
        self._committed = integers(sampled.positions["committed_offset"]) != NONE
        self._has_window = self._committed & (windows.current_lag != NONE)
        self._consumed = self._committed & sampled.unconsumed.is_consumed
        self._rule = burrow_rule_numbers(windows, sampled.at_ms, settings)
        self._severity = np.where(self._has_window, _SEVERITY_OF_RULE[self._rule], Status.NOTFOUND.severity)
        self._filled = (windows.offset != NONE).sum(axis=1)
        self._first = np.minimum(settings.window_commits - self._filled, settings.window_commits - 1)

    def partition_table(self) -> pa.Table:
        """Rows of `partition_status`, without the batch."""
        rows = np.flatnonzero(self._has_window)
        taken = self._sampled.positions.select([*KEY, "member_host", "client_id"])
        if len(rows) < taken.num_rows:
            taken = taken.take(pa.array(rows))
        windows, first = self._windows, self._first[rows]
        start_at, end_at = windows.committed_at_ms[rows, first], windows.committed_at_ms[rows, -1]
        columns = {
            **{name: taken[name] for name in KEY},
            "status": _texts(self._severity[rows], [str(status) for status in _STATUSES]),
            "rule": _texts(self._rule[rows], [rule.burrow_name for rule in BURROW_RULES]),
            "owner": taken["member_host"],
            "client_id": taken["client_id"],
            "start_offset": windows.offset[rows, first],
            "start_timestamp": timestamps(start_at),
            "start_lag": nullable(windows.lag[rows, first]),
            "end_offset": windows.offset[rows, -1],
            "end_timestamp": timestamps(end_at),
            "end_lag": nullable(windows.lag[rows, -1]),
            "current_lag": windows.current_lag[rows],
            "window_rows": self._filled[rows],
            "window_seconds": (end_at - start_at) / 1000,
            "complete": self._filled[rows] / self._settings.window_commits,
            "evaluated_at": timestamps(np.full(len(rows), self._sampled.at_ms)),
        }
        return pa.table(columns).cast(status_schema("partition_status"))

    @cached_property
    def totals(self) -> list[dict[str, Any]]:
        """The columns of `group_status` about all partitions of a group, for each of `names`."""
        if not self.names:
            return []
        lag = np.where(self._has_window, self._windows.current_lag, -1)
        counts = self._sums(self._has_window)
        most = self._maxima(lag)
        is_most = lag == np.repeat(most, np.diff(self._bounds))
        of_most = np.minimum.reduceat(np.where(is_most, np.arange(len(lag)), len(lag)), self._bounds[:-1])
        named = self._sampled.positions.select(["topic", "partition"]).take(pa.array(of_most))
        worst = np.minimum(self._maxima(self._severity), Status.ERR.severity)
        full = self._sums(self._has_window & (self._filled >= self._settings.window_commits))
        known = counts > 0
        columns = {
            "burrow_status": _texts(np.where(known, worst, Status.OK.severity), [str(status) for status in _STATUSES]),
            "partitions": self._sums(self._committed),
            "unknown_partitions": self._sums(self._committed & (integers(self._sampled.lag["lag"]) == NONE)),
            "complete": full / np.maximum(counts, 1),
            "total_lag": pa.array(self._sums(np.maximum(lag, 0)), mask=~known),
            "max_lag": pa.array(most, mask=~known),
            "max_lag_topic": pc.if_else(pa.array(known), named["topic"], None),
            "max_lag_partition": pc.if_else(pa.array(known), named["partition"], None),
        }
        rows: list[dict[str, Any]] = pa.table(columns).to_pylist()
        return rows

    def totals_of(self, group: str) -> dict[str, Any]:
        """The columns of `group_status` about all partitions of a group, also of one without partitions."""
        number = self._number.get(group)
        if number is not None:
            return self.totals[number]
        return {"burrow_status": str(Status.OK), "partitions": 0, "unknown_partitions": 0, "complete": 0.0}

    def groups_with_flags(self) -> set[str]:
        """Groups in which one of our rules about partitions may fire."""
        if not self.names:
            return set()
        return {self.names[number] for number in np.flatnonzero((self._sums(self._flags) > 0) | self._skewed)}

    def groups_with_burrow_defects(self) -> set[str]:
        """Groups in which a rule of Burrow found a defect."""
        rows = np.flatnonzero(self._severity > Status.OK.severity)
        return {self.names[number] for number in np.unique(np.searchsorted(self._bounds, rows, side="right") - 1)}

    def groups_with_unconsumed_positions(self) -> set[str]:
        """Groups with positions that no member can read."""
        return set(self._sampled.unconsumed.topics)

    def unconsumed(self, group: str) -> tuple[UnconsumedTopic, ...]:
        """The positions of a group that no member can read, by topic."""
        return self._sampled.unconsumed.topics.get(group, ())

    def first_findings(self) -> dict[str, Finding]:
        """By group, the finding of Burrow's rules for its first partition that counts and has a window.

        It decides if all are OK.
        """
        rows = np.flatnonzero(self._has_window & self._consumed & (self._severity <= Status.OK.severity))
        group = np.searchsorted(self._bounds, rows, side="right") - 1
        first = rows[begins_run(group)]
        at = self._windows.committed_at_ms
        found = map(
            ok_finding,
            (BURROW_RULES[rule].burrow_name for rule in self._rule[first]),
            self._partitions(first),
            self._filled[first].tolist(),
            ((at[first, -1] - at[first, self._first[first]]) / 1000).tolist(),
        )
        numbers = np.searchsorted(self._bounds, first, side="right") - 1
        return dict(zip((self.names[number] for number in numbers), found, strict=True))

    def evidence(self, group: str, named: Collection[TopicPartition] = ()) -> Iterator[PartitionEvidence]:
        """Evidence of the first partition of a group, of those for which a rule may fire, and of `named` ones.

        Of all partitions if the lag is skewed.
        """
        number = self._number.get(group)
        if number is None:
            return
        rows = np.arange(self._bounds[number], self._bounds[number + 1])
        if not self._skewed[number]:
            chosen = self._flags[rows] | (self._severity[rows] > Status.OK.severity)
            for first in ((self._has_window & self._consumed)[rows], self._committed[rows]):
                chosen[np.flatnonzero(first)[:1]] = True
            if named:
                chosen |= [partition in named for partition in self._partitions(rows)]
            rows = rows[chosen]
        rows = rows[self._committed[rows]]
        lags = self._lag.take(pa.array(rows)).to_pylist()
        for row, lag, partition, owner in zip(rows.tolist(), lags, self._partitions(rows), self._owners(rows), strict=True):
            expires_at, moved_at = int(self._expires_at_ms[row]), int(self._sampled.moved_at_ms[row])
            yield PartitionEvidence(
                partition,
                _partition_lag(lag),
                self._window(row) if self._has_window[row] else None,
                BURROW_RULES[self._rule[row]] if self._has_window[row] else None,
                None if expires_at == NONE else expires_at,
                from_row(lag),
                self._lost_since(row) if lag["messages_lost"] else None,
                owner,
                None if moved_at == NONE else moved_at,
                bool(self._consumed[row]),
                self._sampled.hot.hot(self._hot[row]) if self._hot[row] >= 0 else None,
            )

    @cached_property
    def _lag(self) -> pa.Table:
        """The columns of `lag` that rules read."""
        return self._sampled.lag.select(_LAG_COLUMNS).combine_chunks()

    @cached_property
    def _flags(self) -> Numbers:
        """Partitions for which one of our rules may fire."""
        lag, settings, now = self._sampled.lag, self._settings, self._sampled.at_ms
        lost = integers(lag["messages_lost"]) > 0
        age, margin = (lag[name].to_numpy() for name in ("lag_seconds_high", "retention_margin_seconds"))
        with np.errstate(invalid="ignore"):
            near = age >= settings.retention_share * (age + margin)
        is_first = pc.fill_null(pc.equal(lag["lag_reason"], str(LagReason.FIRST_SAMPLE)), False)
        unknown = pc.and_(pc.equal(lag["lag_method"], str(LagMethod.NONE)), pc.invert(is_first)).to_numpy()
        sampled_at = milliseconds(lag["sampled_at"])
        stale = (sampled_at != NONE) & (now - sampled_at > settings.stale_sample_ms)
        blocked = lag["blocked_since"].is_valid().to_numpy()
        falls = lag["falls_behind_since"].is_valid().to_numpy()
        soon = self._expires_at_ms != NONE
        flags: Numbers = self._consumed & (lost | near | unknown | stale | blocked | falls | soon | (self._hot >= 0))
        return flags

    @cached_property
    def _hot(self) -> Int64s:
        """The row of each position in the hot partitions; -1 for none, and where the group does not lag."""
        hot = self._sampled.hot.rows_of(self._sampled.partition)
        if (hot >= 0).any():
            rows = np.flatnonzero(self._committed)
            low, high = (self._sampled.lag[name].to_numpy()[rows] for name in ("lag_seconds_low", "lag_seconds_high"))
            names = self._sampled.positions.select(["group_id", "topic"]).take(pa.array(rows))
            lags = np.zeros(len(hot), np.bool_)
            lags[rows] = lags_behind_others(low, high, starts_of_runs(*names.columns), self._settings)
            hot[~lags] = -1
        return hot

    @cached_property
    def _skewed(self) -> Numbers:
        """Groups with most of their lag on one partition."""
        lag = integers(self._sampled.lag["lag"])
        known = self._consumed & (lag != NONE)
        lag = np.where(known, np.maximum(0, lag), 0)
        total = self._sums(lag)
        enough = (self._sums(known) >= self._settings.skew_partitions) & (total >= max(1, self._settings.skew_lag))
        skewed: Numbers = enough & (self._maxima(lag) >= self._settings.skew_share * total)
        return skewed

    def _window(self, row: int) -> CommitWindow:
        windows = self._windows
        columns = (windows.offset[row], windows.committed_at_ms[row], windows.lag[row])
        points = zip(*(column[self._first[row] :].tolist() for column in columns), strict=True)
        commits = tuple(CommitPoint(offset, at, None if lag == NONE else lag) for offset, at, lag in points if offset != NONE)
        return CommitWindow(commits, int(windows.current_lag[row]), self._sampled.at_ms, self._settings)

    def _lost_since(self, row: int) -> int | None:
        """Time of the first of the last successful samples whose log start is after the position."""
        samples, partition = self._sampled.samples, self._sampled.partition[row]
        offset, since = self._windows.offset[row, -1], None
        for at in range(int(samples.starts[partition + 1]) - 1, int(samples.starts[partition]) - 1, -1):
            if samples.log_start[at] == NONE:
                continue
            if samples.log_start[at] <= offset:
                break
            since = int(samples.answered_at_ms[at])
        return since

    def _owners(self, rows: Int64s) -> list[PartitionOwner]:
        taken = self._sampled.positions.select(["client_id", "member_host"]).take(pa.array(rows))
        return [
            PartitionOwner(*pair) for pair in zip(taken["client_id"].to_pylist(), taken["member_host"].to_pylist(), strict=True)
        ]

    def _partitions(self, rows: Int64s) -> list[TopicPartition]:
        taken = self._sampled.positions.select(["topic", "partition"]).take(pa.array(rows))
        return [TopicPartition(*pair) for pair in zip(taken["topic"].to_pylist(), taken["partition"].to_pylist(), strict=True)]

    def _sums(self, values: Numbers) -> Int64s:
        """Sums by group; every group has at least one row."""
        return sums_of_runs(values.astype(np.int64), self._bounds[:-1])

    def _maxima(self, values: Numbers) -> Int64s:
        maxima: Int64s = np.maximum.reduceat(values.astype(np.int64), self._bounds[:-1])
        return maxima


def _partition_lag(row: dict[str, Any]) -> PartitionLag:
    """The part of a row of `lag` that rules read."""
    return PartitionLag(
        lag=row["lag"],
        lag_seconds_low=row["lag_seconds_low"],
        lag_seconds_high=row["lag_seconds_high"],
        lag_method=LagMethod(row["lag_method"]),
        lag_reason=row["lag_reason"],
        messages_lost=row["messages_lost"],
        retention_margin_seconds=row["retention_margin_seconds"],
        sampled_at_ms=None if row["sampled_at"] is None else to_ms(row["sampled_at"]),
        lag_slope_per_second=row["lag_slope_per_second"],
        produce_rate=row["produce_rate"],
        falls_behind_since_ms=None if row["falls_behind_since"] is None else to_ms(row["falls_behind_since"]),
        falls_behind_since_is_latest=row["falls_behind_since_is_latest"],
    )


def _texts(numbers: Int64s, names: list[str]) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(names)).cast(pa.string())
