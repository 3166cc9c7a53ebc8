"""Status of groups at any time, from the histories in the tables, as the job computed it or would have. Times in ms.

Lag, windows and trends are computed in the columns of a sample, from the commits in the histories.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import (
    NONE,
    CommitColumns,
    CommitEvent,
    GroupEvidence,
    GroupStatus,
    GrowthStarts,
    RecentPoints,
    Status,
    StatusSettings,
    evaluate,
    hot_columns,
    lag_columns,
    offset_jumps,
    present_membership,
)
from coordinator_core.health.sample_columns import integers
from pipelines.lag.columns import milliseconds
from pipelines.lag.inputs.open_transactions import COLUMNS as BLOCKED_COLUMNS
from pipelines.lag.inputs.open_transactions import as_row
from pipelines.lag.past.lag_at import proven_until_ms
from pipelines.lag.past.past_groups import PastGroups
from pipelines.lag.past.samples_at import sampled_until
from pipelines.lag.settings import settings_of
from pipelines.lag.tables.commit_windows import CommitEvents, CommitWindows
from pipelines.lag.tables.lag_trend import trends_of
from pipelines.lag.tables.partition_rules import PartitionRules, SampledPositions
from pipelines.lag.tables.status_rows import status_columns, status_schema
from pipelines.query.engine import Snapshot
from pipelines.query.poll_times import is_polled
from pipelines.runtime.timestamps import TIMESTAMP, to_ms
from pipelines.runtime.timestamps import at_ms as timestamp

_GROUP_NAMES = "SELECT DISTINCT group_id FROM {table}"

_POSITION_SCHEMA = pa.schema(
    {
        "group_id": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "client_id": pa.string(),
        "member_host": pa.string(),
        "committed_offset": pa.int64(),
        "committed_at": TIMESTAMP,
        "moved_at": TIMESTAMP,
        "topic_id": pa.string(),
    }
)


def group_status_at(
    snapshot: Snapshot, at: datetime, groups: Collection[str] | None = None, settings: StatusSettings | None = None
) -> pa.Table:
    """Status of groups at a time until the batch of `snapshot`, with the columns of `group_status` except `batch_id`.

    `settings` are those of the job at that time; None for those of the batch of `snapshot`. Groups that did not exist have the
    status NOTFOUND; without `groups` they are left out.

    Raises:
        UsageError: no batch was complete at that time.
    """
    at_ms = to_ms(at)
    names = _all_groups(snapshot) if groups is None else sorted(set(groups))
    past = PastGroups(snapshot, at_ms, names)
    settings = settings or settings_of(snapshot.batch)
    commits = {name: past.commits(name) for name in names}
    sampled = _sampled(snapshot, past, commits, at_ms, settings)
    rules = PartitionRules(sampled, settings, past.expiries(sampled.positions, at_ms + settings.expiry_ms))
    rows = []
    for name in names:
        status = evaluate(_evidence(name, past, rules, commits[name], at_ms, settings))
        if groups is not None or status.status is not Status.NOTFOUND:
            rows.append(_row(status, rules.totals_of(name)))
    return pa.Table.from_pylist(rows, status_schema("group_status"))


def _evidence(
    group: str, past: PastGroups, rules: PartitionRules, commits: Sequence[CommitEvent], at_ms: int, settings: StatusSettings
) -> GroupEvidence:
    memberships = past.memberships(group)
    jumps = offset_jumps(commits, memberships)
    partitions = rules.evidence(group, {jump.partition for jump in jumps})
    return GroupEvidence(
        group,
        at_ms,
        settings,
        tuple(each if past.knows_owners else replace(each, owner=None) for each in partitions),
        present_membership(memberships),
        past.rebalances(group),
        jumps,
        past.pending(group),
        rules.unconsumed(group),
        is_polled(past.then.batch),
    )


def _row(status: GroupStatus, totals: Mapping[str, Any]) -> dict[str, Any]:
    burrow = str(Status.NOTFOUND) if status.status is Status.NOTFOUND else totals["burrow_status"]
    return {**status_columns(status), **totals, "burrow_status": burrow, "evaluated_at": timestamp(status.at_ms)}


class _Positions(NamedTuple):
    """A row per position with a committed offset, and its commits since the last removal."""

    rows: pa.Table
    commits: CommitEvents

    @classmethod
    def of(cls, past: PastGroups, commits: Mapping[str, Sequence[CommitEvent]]) -> "_Positions":
        rows: list[tuple[Any, ...]] = []
        events: list[tuple[int, int, int]] = []
        for group, of_group in commits.items():
            for partition, since in sorted(_present(of_group).items()):
                last = since[-1]
                moved = _moved_by(since)
                owner = past.owners.get((group, *partition), (None, None))
                events += [(len(rows), event.offset or 0, event.at_ms) for event in since]
                times = timestamp(last.at_ms), timestamp(moved.at_ms)
                rows.append((group, *partition, *owner, last.offset, *times, last.topic_id))
        columns = zip(*rows, strict=True) if rows else ([] for _ in _POSITION_SCHEMA)
        table = pa.table([list(column) for column in columns], schema=_POSITION_SCHEMA)
        return cls(table, CommitEvents(*np.array(events, np.int64).reshape(-1, 3).T))


def _moved_by(commits: Sequence[CommitEvent]) -> CommitEvent:
    """The commit that moved the offset to its value; later ones repeat it."""
    *_, moved = takewhile(lambda event: event.offset == commits[-1].offset, reversed(commits))
    return moved


def _present(commits: Sequence[CommitEvent]) -> dict[TopicPartition, list[CommitEvent]]:
    """The commits of each partition that has an offset, since its last removal."""
    found: dict[TopicPartition, list[CommitEvent]] = {}
    for event in commits:
        found.setdefault(event.partition, []).append(event)
        if event.offset is None:
            del found[event.partition]
    return found


def _sampled(
    snapshot: Snapshot,
    past: PastGroups,
    commits: Mapping[str, Sequence[CommitEvent]],
    at_ms: int,
    settings: StatusSettings,
) -> SampledPositions:
    positions, events = _Positions.of(past, commits)
    sampled = sampled_until(snapshot, at_ms, set(positions["topic"].to_pylist()))
    partition = sampled.partition_numbers(positions["topic"], positions["partition"])
    committed_at, moved_at = milliseconds(positions["committed_at"]), milliseconds(positions["moved_at"])
    windows = CommitWindows(settings)
    recent = events.at_ms >= np.minimum(at_ms - settings.window_ms, committed_at[events.row])
    windows.replay(CommitEvents(*(column[recent] for column in events)), positions, partition, sampled.columns)
    points = RecentPoints(positions.num_rows)
    points.add(events.row, events.at_ms, events.offset)
    lag = lag_columns(
        CommitColumns(
            partition=partition,
            offset=integers(positions["committed_offset"]),
            committed_at_ms=committed_at,
            topic_id=sampled.topic_id_numbers(positions["topic_id"]),
            moved_at_ms=moved_at,
            pending_offset=past.pending_offsets(positions),
            read_until_ms=np.full(positions.num_rows, proven_until_ms(snapshot, past.then.batch, at_ms)),
        ),
        sampled.columns,
        trend=trends_of(points, positions, partition, sampled.columns, settings, _falling(past, positions)),
    )
    unconsumed = past.unconsumed(positions, lag["lag_reason"], settings)
    return SampledPositions(
        positions,
        _with_open_transactions(lag, positions, past),
        windows.columns(partition, sampled.columns, at_ms),
        moved_at,
        partition,
        sampled.columns,
        at_ms,
        unconsumed,
        hot_columns(sampled.columns, sampled.topic_of_partition, at_ms, settings),
    )


def _falling(past: PastGroups, positions: pa.Table) -> GrowthStarts:
    found = [past.falling.get(key, (NONE, False)) for key in _keys(positions)]
    return GrowthStarts(np.array([at for at, _ in found], np.int64), np.array([latest for _, latest in found], np.bool_))


def _with_open_transactions(lag: pa.Table, positions: pa.Table, past: PastGroups) -> pa.Table:
    """`lag` with the columns about open transactions, as the last sample found them."""
    found = [past.blocked_by.get(group, {}).get(TopicPartition(topic, number)) for group, topic, number in _keys(positions)]
    rows = [dict.fromkeys(BLOCKED_COLUMNS) if each is None else as_row(each) for each in found]
    for name, kind in BLOCKED_COLUMNS.items():
        lag = lag.append_column(name, pa.array([row[name] for row in rows], kind))
    return lag


def _keys(positions: pa.Table) -> list[tuple[str, str, int]]:
    return list(zip(*(positions[name].to_pylist() for name in ("group_id", "topic", "partition")), strict=True))


def _all_groups(snapshot: Snapshot) -> list[str]:
    union = " UNION ".join(_GROUP_NAMES.format(table=table) for table in ("groups", "offsets", "offset_history", "group_history"))
    names: list[str] = snapshot.query(f"SELECT group_id FROM ({union}) g ORDER BY group_id")["group_id"].to_pylist()
    return names
