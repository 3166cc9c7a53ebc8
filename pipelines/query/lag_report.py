"""`grouplake lag`: the lag of groups, printed as `kafka-consumer-groups --describe` of Kafka 4.x prints it."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import pyarrow as pa

from pipelines.errors import UsageError
from pipelines.lag.positions import POSITIONS
from pipelines.query.blocking_transactions import blocking_transactions
from pipelines.query.engine import Snapshot
from pipelines.query.kafka_layout import cell, write_block, write_remark
from pipelines.query.partition_findings import PartitionFindings
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
_REPORTED = [
    *("group_id", "topic", "partition", "leader_epoch", "group_offset", "latest_offset", "lag", "consumer_id", "member_host"),
    *("client_id", "lag_seconds", "lag_seconds_low", "lag_seconds_high", "lag_method", "lag_reason", "sampled_at"),
]
_ORDER = "ORDER BY group_id, topic, partition"
_STATES = "SELECT group_id, state, member_count FROM groups"
_COLUMNS = {
    "GROUP": "group_id",
    "TOPIC": "topic",
    "PARTITION": "partition",
    "LEADER-EPOCH": "leader_epoch",
    "CURRENT-OFFSET": "group_offset",
    "LOG-END-OFFSET": "latest_offset",
    "LAG": "lag",
    "CONSUMER-ID": "consumer_id",
    "HOST": "member_host",
    "CLIENT-ID": "client_id",
}

#: Columns that `LagReport.of` adds on request.
_ON_REQUEST = {"STATUS": "status", "RULE": "rule", "BLOCKED-BY": "blocked_by"}


@dataclass(frozen=True)
class LagReport:
    """Lag of groups at one batch, with their states."""

    rows: pa.Table
    states: dict[str, tuple[str, int]]

    @classmethod
    def of(
        cls, snapshot: Snapshot, groups: Sequence[str], *, with_status: bool = False, with_transactions: bool = False
    ) -> "LagReport":
        """The lag of these groups; of all groups if none is named.

        `with_status` adds the columns `status` and `rule`, `with_transactions` the column `blocked_by`.

        Raises:
            UsageError: a named group does not exist.
        """
        named = f"WHERE group_id IN ({', '.join(map(literal, groups))})" if groups else ""
        rows = _rows(snapshot, groups, named)
        states = {
            row["group_id"]: (row["state"], row["member_count"]) for row in snapshot.query(f"{_STATES} {named}").to_pylist()
        }
        require_groups(groups, states.keys() | set(rows["group_id"].to_pylist()), snapshot)
        if with_status:
            rows = _with_status(rows, PartitionFindings.of(snapshot, groups))
        return cls(_with_transactions(rows, snapshot, groups) if with_transactions else rows, states)

    def write(self, out: TextIO, messages: TextIO, *, verbose: bool = False, seconds: bool = False) -> None:
        """Write a block per group, in the order of their names, and remarks about groups to `messages`."""
        by_group: dict[str, list[dict[str, Any]]] = {group: [] for group in self.states}
        for row in self.rows.to_pylist():
            by_group.setdefault(row["group_id"], []).append(row)
        hidden = set() if verbose else {"LEADER-EPOCH"}
        columns = [*(name for name in _COLUMNS if name not in hidden), *(["SECONDS"] if seconds else [])]
        columns += [name for name, column in _ON_REQUEST.items() if column in self.rows.column_names]
        for group in sorted(by_group):
            write_remark(messages, group, *self.states.get(group, ("Empty", 0)))
            write_block(out, [_cells(row) for row in _in_order(by_group[group])], columns)


def _rows(snapshot: Snapshot, groups: Sequence[str], named: str) -> pa.Table:
    """The table `lag` of the newest batch or of a sample; the lag of another batch is computed from the samples around it."""
    newest = snapshot.newest()
    if newest.batch.batch_id > snapshot.batch.batch_id and "lag" in newest.batch.versions:
        from pipelines.lag.lag_at import recorded_lag

        found = recorded_lag(snapshot, newest, groups)
        epochs = snapshot.query(f"SELECT group_id, topic, partition, leader_epoch FROM offsets {named}").to_pylist()
        by_key = {(row["group_id"], row["topic"], row["partition"]): row["leader_epoch"] for row in epochs}
        keys = zip(*(found[name].to_pylist() for name in ("group_id", "topic", "partition")), strict=True)
        return found.append_column("leader_epoch", pa.array([by_key.get(key) for key in keys], pa.int32())).select(_REPORTED)
    is_sampled = "lag" in snapshot.batch.versions and snapshot.query("SELECT 1 FROM lag LIMIT 1").num_rows
    return snapshot.query(f"SELECT * FROM ({_SAMPLED if is_sampled else _UNSAMPLED}) r {named} {_ORDER}")


def _with_status(rows: pa.Table, findings: PartitionFindings) -> pa.Table:
    keys = zip(*(rows[name].to_pylist() for name in ("group_id", "topic", "partition")), strict=True)
    decisions = [findings.decision(*key) for key in keys]
    for number, name in enumerate(("status", "rule")):
        rows = rows.append_column(name, pa.array([decision[number] for decision in decisions], pa.string()))
    return rows


def _with_transactions(rows: pa.Table, snapshot: Snapshot, groups: Sequence[str]) -> pa.Table:
    is_newest = snapshot.newest().batch.batch_id == snapshot.batch.batch_id
    blocking = blocking_transactions(snapshot.query, snapshot.batch, groups, with_lag=is_newest)
    keys = zip(*(rows[name].to_pylist() for name in ("group_id", "topic", "partition")), strict=True)
    names = [", ".join(blocking.get(key, ())) or None for key in keys]
    return rows.append_column("blocked_by", pa.array(names, pa.string()))


def _in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Owned partitions first, the owner with the most partitions first; then the partitions without an owner."""
    rows = list(rows)
    owned = Counter(row["consumer_id"] for row in rows)

    def position(row: dict[str, Any]) -> tuple[Any, ...]:
        owner = row["consumer_id"]
        return (owner is None, 0 if owner is None else -owned[owner], owner or "", row["topic"], row["partition"])

    return sorted(rows, key=position)


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    kafka = {name: cell(row[column]) for name, column in _COLUMNS.items()}
    return {
        **kafka,
        "SECONDS": _seconds(row),
        **{name: cell(row.get(column)) for name, column in _ON_REQUEST.items()},
    }


def require_groups(groups: Sequence[str], known: Container[str], snapshot: Snapshot) -> None:
    """Raise UsageError for a named group that is not known."""
    missing = next((group for group in sorted(groups) if group not in known), None)
    if missing is not None:
        raise UsageError(f"no group {missing!r} in batch {snapshot.batch.batch_id}: list them with --all-groups")


def _seconds(row: Mapping[str, Any]) -> str:
    """The age with its bounds, such as `120 (90–150)`; `-` if unknown."""
    if row["lag_seconds"] is None:
        return "-"
    low, high = row["lag_seconds_low"], row["lag_seconds_high"]
    if row["lag_method"] == "lower_bound" or low is None or high is None:
        return f"≥ {row['lag_seconds']:.0f}"
    return f"{row['lag_seconds']:.0f} ({low:.0f}–{high:.0f})"
