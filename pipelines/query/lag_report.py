"""`grouplake lag`: the lag of groups, printed as `kafka-consumer-groups --describe` of Kafka 4.x prints it."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import pyarrow as pa

from pipelines.errors import UsageError
from pipelines.lag.positions import POSITIONS
from pipelines.query.engine import Snapshot
from pipelines.query.output import to_stdout
from pipelines.tables.store import literal

_SAMPLED = """
SELECT l.group_id, l.topic, l.partition, o.leader_epoch, l.group_offset, l.latest_offset, l.lag, l.consumer_id, l.member_host,
       l.client_id, l.lag_seconds, l.lag_seconds_low, l.lag_seconds_high, l.lag_method, l.lag_reason, l.sampled_at
FROM lag l
LEFT JOIN offsets o ON o.group_id = l.group_id AND o.topic = l.topic AND o.partition = l.partition
"""
#: Before the first sample, or without samples: ends are unknown.
_UNSAMPLED = f"""
SELECT p.group_id, p.topic, p.partition, o.leader_epoch, p.committed_offset AS group_offset,
       CAST(NULL AS BIGINT) AS latest_offset, CAST(NULL AS BIGINT) AS lag, p.consumer_id, p.member_host, p.client_id,
       CAST(NULL AS DOUBLE) AS lag_seconds, CAST(NULL AS DOUBLE) AS lag_seconds_low, CAST(NULL AS DOUBLE) AS lag_seconds_high,
       'none' AS lag_method, 'no_sample' AS lag_reason, CAST(NULL AS TIMESTAMP) AS sampled_at
FROM ({POSITIONS}) p
LEFT JOIN offsets o ON o.group_id = p.group_id AND o.topic = p.topic AND o.partition = p.partition
"""
_ORDER = "ORDER BY group_id, topic, partition"
_STATES = "SELECT group_id, state, member_count FROM groups"
#: States in which Kafka's tool warns.
_REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})

_HEAD = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")
_COLUMNS = (
    "group_id", "topic", "partition", "group_offset", "latest_offset", "lag", "consumer_id", "member_host", "client_id",
)  # fmt: skip
_WIDTHS = {"PARTITION": 10}
_LEAST_WIDTH = 15


@dataclass(frozen=True)
class LagReport:
    """Lag of groups at one batch, with their states."""

    rows: pa.Table
    states: dict[str, tuple[str, int]]

    @classmethod
    def of(cls, snapshot: Snapshot, groups: Sequence[str]) -> "LagReport":
        """The lag of these groups; of all groups if none is named.

        Raises:
            UsageError: a named group does not exist.
        """
        is_sampled = "lag" in snapshot.batch.versions and snapshot.query("SELECT 1 FROM lag LIMIT 1").num_rows
        selected = f"SELECT * FROM ({_SAMPLED if is_sampled else _UNSAMPLED}) r"
        rows = snapshot.query(f"{selected} {_ORDER}")
        states = {row["group_id"]: (row["state"], row["member_count"]) for row in snapshot.query(_STATES).to_pylist()}
        if groups:
            known = states.keys() | set(rows["group_id"].to_pylist())
            missing = sorted(set(groups) - known)
            if missing:
                raise UsageError(f"no group {missing[0]!r} in batch {snapshot.batch.batch_id}: list them with --all-groups")
            names = ", ".join(map(literal, groups))
            rows = snapshot.query(f"{selected} WHERE group_id IN ({names}) {_ORDER}")
            states = {group: state for group, state in states.items() if group in groups}
        return cls(rows, states)

    def write(self, out: TextIO, messages: TextIO, *, verbose: bool = False, seconds: bool = False) -> None:
        """Write a block per group, in the order of their names, and remarks about groups to `messages`."""
        by_group: dict[str, list[dict[str, Any]]] = {group: [] for group in self.states}
        for row in self.rows.to_pylist():
            by_group.setdefault(row["group_id"], []).append(row)
        for group in sorted(by_group):
            state, members = self.states.get(group, ("Empty", 0))
            if state in _REBALANCING:
                messages.write(f"\nWarning: Consumer group '{group}' is rebalancing.\n")
            elif not members:
                messages.write(f"\nConsumer group '{group}' has no active members.\n")
            _write_block(out, _in_order(by_group[group]), verbose, seconds)

    def to_stdout(self, format_name: str) -> None:
        """Write all columns as JSON lines or CSV, in the order of groups, topics and partitions."""
        to_stdout(self.rows, format_name)


def _in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Owned partitions first, the owner with the most partitions first; then the partitions without an owner."""
    rows = list(rows)
    owned = Counter(row["consumer_id"] for row in rows)

    def position(row: dict[str, Any]) -> tuple[Any, ...]:
        owner = row["consumer_id"]
        return (owner is None, 0 if owner is None else -owned[owner], owner or "", row["topic"], row["partition"])

    return sorted(rows, key=position)


def _write_block(out: TextIO, rows: Sequence[dict[str, Any]], verbose: bool, seconds: bool) -> None:
    lines = [list(_HEAD), *([_cell(row[name]) for name in _COLUMNS] for row in rows)]
    if verbose:
        for line, row in zip(lines, [None, *rows], strict=True):
            line.insert(3, "LEADER-EPOCH" if row is None else _cell(row["leader_epoch"]))
    if seconds:
        for line, row in zip(lines, [None, *rows], strict=True):
            line.append("SECONDS" if row is None else _seconds(row))
    head = lines[0]
    widths = [
        _WIDTHS.get(name, _LEAST_WIDTH) if name not in ("GROUP", "TOPIC", "CONSUMER-ID", "HOST", "CLIENT-ID")
        else max(_LEAST_WIDTH, *(len(line[at]) for line in lines))
        for at, name in enumerate(head)
    ]  # fmt: skip
    for line in lines:
        padded = [cell.ljust(width) for cell, width in zip(line[:-1], widths[:-1], strict=True)]
        out.write("\n" + " ".join([*padded, line[-1]]))
    out.write("\n")


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _seconds(row: dict[str, Any]) -> str:
    """The age with its bounds, such as `120 (90–150)`; `-` if unknown."""
    if row["lag_seconds"] is None:
        return "-"
    low, high = row["lag_seconds_low"], row["lag_seconds_high"]
    if row["lag_method"] == "lower_bound" or low is None or high is None:
        return f"≥ {row['lag_seconds']:.0f}"
    return f"{row['lag_seconds']:.0f} ({low:.0f}–{high:.0f})"


def print_lag(root: str, groups: Sequence[str], *, as_of: str | None, format_name: str, verbose: bool, seconds: bool) -> None:
    """Print the lag of groups under `root` to standard output."""
    report = LagReport.of(Snapshot.open(root, as_of), groups)
    if format_name == "table":
        report.write(sys.stdout, sys.stderr, verbose=verbose, seconds=seconds)
    else:
        report.to_stdout(format_name)
