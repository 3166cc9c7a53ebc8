"""`grouplake lag`: the lag of groups, printed as `kafka-consumer-groups --describe` of Kafka 4.x prints it."""

import textwrap
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.health import rule_label
from pipelines.lag.reports.partition_findings import Decision, PartitionFindings
from pipelines.lag.reports.share_blocks import share_offsets, write_share_block
from pipelines.lag.tables.blocking_transactions import blocking_transactions
from pipelines.query.engine import Snapshot
from pipelines.query.kafka_layout import cell, write_block, write_remark
from pipelines.query.output import plain
from pipelines.query.poll_times import is_polled, polls_before
from pipelines.query.positions import POSITIONS
from pipelines.query.unknown_status import unknown_statuses
from pipelines.runtime.errors import UsageError
from pipelines.runtime.terminal_text import mask_of
from pipelines.runtime.timestamps import TIMESTAMP
from pipelines.tables.store import literal

_WIDTH = 100
_INDENT = "  "

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

_COMMIT = ("group_id", "topic", "partition", "committed_offset")
_POLLED = (
    "SELECT group_id, topic, partition, committed_offset, record_timestamp, log_partition, log_offset, batch_id FROM offsets"
)

#: Columns that `LagReport.of` adds on request.
_ON_REQUEST = {"STATUS": "status", "RULE": "rule", "BLOCKED-BY": "blocked_by"}


@dataclass(frozen=True)
class LagReport:
    """Lag of groups at one batch, with their states and, on request, their incidents and facts in words.

    `shares` has the rows of `share_offsets` of share groups, which have no position.
    """

    rows: pa.Table
    states: dict[str, tuple[str, int]]
    incidents: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    facts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    shares: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        groups: Sequence[str],
        *,
        with_status: bool = False,
        with_transactions: bool = False,
        with_commits: bool = False,
        old: str | None = None,
    ) -> "LagReport":
        """The lag of these groups; of all groups if none is named.

        `with_status` adds the columns `status`, `rule` and `detail`, the incidents and facts; `with_transactions` the column
        `blocked_by`; `with_commits` the columns `committed_after` and `committed_before`, for tables that were made from polls.
        `old` is the reason why the rows are older than expected, so that no status is known; None if they are not.

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
            findings = PartitionFindings.of(snapshot, groups)
            rows = _with_status(rows, findings)
            rows = rows if old is None else unknown_statuses(rows, old)
        is_judged = with_status and old is None
        incidents = {group: findings.incidents(group) for group in states} if is_judged else {}
        facts = {group: findings.facts(group) for group in states} if is_judged else {}
        if with_commits and is_polled(snapshot.batch):
            rows = _with_commits(rows, snapshot, named)
        rows = rows.append_column("old", pa.repeat(pa.scalar(old, pa.string()), rows.num_rows))
        rows = _with_transactions(rows, snapshot, groups) if with_transactions else rows
        return cls(rows, states, incidents, facts, share_offsets(snapshot, named))

    def sample_note(self, at: datetime) -> str | None:
        """A line about the sample that the lag is of; None if it was taken at that time, to the second."""
        sampled_at = pc.max(self.rows["sampled_at"]).as_py()
        if sampled_at is None:
            return "no sample of log ends until then, so lag is unknown"
        seconds = round((at - sampled_at).total_seconds())
        if not seconds:
            return None
        return f"lag of the last sample until then, at {plain(sampled_at)}, {seconds:,} s earlier"

    def write(self, out: TextIO, messages: TextIO, *, verbose: bool = False, seconds: bool = False) -> None:
        """Write a block per group, in the order of their names, and remarks about groups to `messages`."""
        by_group: dict[str, list[dict[str, Any]]] = {group: [] for group in self.states}
        for row in self.rows.to_pylist():
            by_group.setdefault(row["group_id"], []).append(row)
        hidden = set() if verbose else {"LEADER-EPOCH"}
        columns = [*(name for name in _COLUMNS if name not in hidden), *(["SECONDS"] if seconds else [])]
        columns += ["COMMITTED"] if "committed_before" in self.rows.column_names else []
        columns += [name for name, column in _ON_REQUEST.items() if column in self.rows.column_names]
        for group in sorted(by_group):
            write_remark(messages, group, *self.states.get(group, ("Empty", 0)))
            if group in self.shares:
                write_share_block(out, messages, self.shares[group], verbose=verbose)
            else:
                write_block(out, [_cells(row) for row in _in_order(by_group[group])], columns)
            write_incidents(out, self.incidents.get(group, ()))
            for fact in self.facts.get(group, ()):
                _write(out, "", fact)


def _rows(snapshot: Snapshot, groups: Sequence[str], named: str) -> pa.Table:
    """The table `lag` of the last sample until the batch, computed again if its files were removed."""
    newest = snapshot.newest()
    if newest.batch.batch_id > snapshot.batch.batch_id and "lag" in newest.batch.versions:
        from pipelines.lag.past.lag_at import recorded_lag

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
    for number, name in enumerate(Decision._fields):
        rows = rows.append_column(name, pa.array([decision[number] for decision in decisions], pa.string()))
    return rows


def _with_commits(rows: pa.Table, snapshot: Snapshot, named: str) -> pa.Table:
    """Add the intervals of the commits that the rows show; null for one that is newer than the sample of a row."""
    commits = snapshot.query(f"{_POLLED} {named}").to_pylist()
    polls = polls_before(snapshot.query, commits)
    times = {tuple(row[name] for name in _COMMIT): (polls.get(row["log_offset"]), row["record_timestamp"]) for row in commits}
    keys = zip(*(rows[name].to_pylist() for name in ("group_id", "topic", "partition", "group_offset")), strict=True)
    found = [times.get(key, (None, None)) for key in keys]
    for number, name in enumerate(("committed_after", "committed_before")):
        rows = rows.append_column(name, pa.array([each[number] for each in found], TIMESTAMP))
    return rows


def _with_transactions(rows: pa.Table, snapshot: Snapshot, groups: Sequence[str]) -> pa.Table:
    blocking = blocking_transactions(snapshot, groups)
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
    if row["group_offset"] is not None and row["group_offset"] < 0:
        # Kafka's tool takes a negative offset for no commit (ListConsumerGroupOffsetsHandler)
        kafka["CURRENT-OFFSET"] = cell(None)
    return {
        **kafka,
        "SECONDS": _seconds(row),
        "COMMITTED": _committed(row),
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


def _committed(row: Mapping[str, Any]) -> str:
    """The interval of a polled commit, such as `after 12:00:05, before 12:00:35`; `-` without a commit."""
    after, before = row.get("committed_after"), row.get("committed_before")
    if before is None:
        return "-"
    return f"before {plain(before)}" if after is None else f"after {plain(after)}, before {plain(before)}"


def write_incidents(out: TextIO, incidents: Iterable[Mapping[str, Any]]) -> None:
    """Write each incident: its status and cause, what follows, the next step, and what it causes."""
    for incident in incidents:
        _write(out, "", f"{incident['status']}: {incident['sentence']} ({rule_label(incident['rule'])})")
        for title, key in (("If nothing is done: ", "consequence"), ("Next: ", "next_step")):
            if incident[key]:
                _write(out, _INDENT, f"{title}{incident[key]}")
        for symptom in incident["symptoms"]:
            _write(out, _INDENT, f"It causes {symptom['status']}: {symptom['sentence']} ({rule_label(symptom['rule'])})")


def _write(out: TextIO, indent: str, text: str) -> None:
    lines = textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    out.write("\n".join([*map(mask_of(out), lines), ""]))
