"""The page of one group: its status with the reason, lag and owners over time, events, and tabs with the rows."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from coordinator_core.group_polls.group_poll import POLLED_PARTITION
from coordinator_core.health.group_facts import fact_text
from coordinator_core.health.timed_text import timed_text, with_marks
from coordinator_core.state.classic_group import CONSUMER_PROTOCOL_TYPE
from pipelines.dashboard.formatting.reasons import STOPPED, reasons
from pipelines.dashboard.formatting.statuses import status_words
from pipelines.dashboard.history.age_series import with_current
from pipelines.dashboard.history.default_span import span_of_group
from pipelines.dashboard.history.group_history import GroupQueries
from pipelines.dashboard.history.partition_lags import partition_lags
from pipelines.dashboard.pages.group.blocked_history import blocked_events, blocked_rows
from pipelines.dashboard.pages.group.group_events import folded, group_events, removal_events, return_events, stops
from pipelines.dashboard.pages.group.group_tabs import TABS
from pipelines.dashboard.pages.group.incident_events import alerts, losses
from pipelines.dashboard.pages.group.member_facts import member_facts, unreadable_members
from pipelines.dashboard.pages.group.member_labels import member_labels
from pipelines.dashboard.pages.group.steady_syncs import without_sync_rows
from pipelines.dashboard.pages.parts.greatest_age import greatest_age
from pipelines.dashboard.pages.parts.page import NoSuchPage, Query, choice
from pipelines.dashboard.state.moment import Moment
from pipelines.dashboard.state.parallel import in_parallel
from pipelines.lag.tables.spare_members import partitions_of_topics
from pipelines.query.poll_times import poll_note, polls_before
from pipelines.runtime.errors import RemovedState
from pipelines.runtime.timestamps import to_ms
from pipelines.tables.store import literal

Row = dict[str, Any]

_COMMITTED = """
SELECT group_id, topic, partition, commit_timestamp, record_timestamp, metadata, leader_epoch, log_partition, log_offset, batch_id
FROM committed_offsets WHERE group_id = {group}
"""
#: With the group, so that a viewer who may not see it finds no row.
_IS_KNOWN = "SELECT group_id FROM membership_history WHERE group_id = {group} LIMIT 1"
_SHARE_OFFSETS = """
SELECT topic, partition, start_offset, lag, reason FROM share_offsets WHERE group_id = {group}
ORDER BY topic, partition
"""
#: Columns of `lag` that the page shows.
_LAG = (
    *("topic", "partition", "consumer_id", "client_id", "member_host", "group_offset", "earliest_offset", "latest_offset"),
    *("lag", "data_lag", "lag_seconds", "lag_seconds_low", "lag_seconds_high", "lag_method", "lag_reason", "messages_lost"),
    *("blocked_by_transaction", "lag_slope_per_second", "slope_window_seconds", "produce_rate", "consume_rate"),
    *("falls_behind_since", "stuck_seconds", "retention_margin_seconds", "status", "rule"),
    *("blocked_since", "blocked_since_method", "blocked_by_producer_id", "blocked_by_transactional_id"),
    "unconsumed",
)


def group_page(moment: Moment, group: str, query: Query) -> Row:
    """The model of the page.

    Raises:
        NoSuchPage: there is no such group at this time, and the histories do not have it.
        UsageError: an invalid span or tab.
    """
    span = span_of_group(moment, group, query.get("span"))
    tab = choice("tab", query.get("tab"), [name for name, _, _ in TABS])
    record, offsets, members = moment.group(group), offsets_of(moment, group), moment.members(group)
    if record is None and not offsets and not _is_in_histories(moment, group):
        raise NoSuchPage(f"no group {group!r} at {moment.at:%Y-%m-%d %H:%M:%S} UTC")
    figures = figures_of(offsets)
    history = GroupQueries(moment, group, record is not None and record["state"] == "Empty", span)
    # those whose plans take longest first
    rebalances, samples, owners, resets, commits, lags, changes, returns, removals = in_parallel(
        *(history.rebalances, history.chosen_samples, history.owners, history.resets, history.commits, history.lag),
        *(history.member_changes, history.returns, history.removals),
    )
    affected = [row for row in offsets if is_affected(row)]
    partition_lag = partition_lags(samples, span, lags, offsets, affected, moment.sampled_at)
    labels = member_labels([*owners, *({**row, "since": row["record_timestamp"], "until": None} for row in members)])
    status = moment.statuses([group]).get(group)
    findings = status["findings"] or [] if status else []
    stopped = stops(offsets, findings, labels, moment.at)
    blocked = blocked_rows(moment, group, span) if history.has_blocked_partitions() else []
    others = [*stopped, *blocked_events(blocked), *removal_events(removals), *return_events(returns)]
    others += losses(moment, group, span) if history.has_losses() else []
    others += alerts(moment, group, span)
    resets, syncs = without_sync_rows(resets)
    others += syncs
    events = folded(group_events(rebalances, changes, resets, others, labels))
    rows = next(read for name, _, read in TABS if name == tab)
    return {
        "group_id": group,
        "owner": moment.teams.of(group),
        "exists": record is not None or bool(offsets),
        "poll_note": poll_note(moment.batch),
        "group": _without(record, "group_id", "batch_id"),
        "status": _status(status, stopped, moment.at),
        "figures": figures,
        "span": {"start": span.start, "end": span.end, "text": span.text},
        "lag_history": with_current(lags, figures, moment.sampled_at),
        "partition_lag": partition_lag,
        "commits": commits,
        "owners": [{**row, "name": labels[row["member_id"]].name, "colour": labels[row["member_id"]].colour} for row in owners],
        "member_facts": _member_facts(moment, group, record, members),
        "hides_owners": bool(unreadable_members(members)),
        "members": {member: {"name": label.name, "colour": label.colour} for member, label in labels.items()},
        "rebalances": rebalances,
        "resets": resets,
        "blocked": blocked,
        "events": events,
        "offsets": offsets,
        "share_offsets": share_offsets_of(moment, group) if record and record["group_type"] == "share" else [],
        "tab": tab,
        **_tab_rows(moment, group, rows),
    }


def _member_facts(moment: Moment, group: str, record: Row | None, members: list[Row]) -> list[str]:
    """Facts about the members of a stable group; none at a time whose table of members was removed."""
    if record is None or record["state"] != "Stable" or moment.is_derived:
        return []
    is_consumer = record["group_type"] != "classic" or record["protocol_type"] == CONSUMER_PROTOCOL_TYPE
    if not is_consumer or all(row["assigned"] for row in members):
        return []
    with suppress(RemovedState):
        return member_facts(members, partitions_of_topics(moment.query, moment.batch, {group})[group])
    return []


def _tab_rows(moment: Moment, group: str, rows: Callable[[Moment, str], list[Row]] | None) -> Row:
    """The rows of a tab; at a time whose tables were removed there are none, and the reason."""
    try:
        return {"rows": rows(moment, group) if rows else [], "removed": None}
    except RemovedState as error:
        return {"rows": [], "removed": str(error)}


def offsets_of(moment: Moment, group: str) -> list[Row]:
    """Rows of lag with the time of the commit, affected partitions and the greatest ages first.

    A commit that was polled was made before `committed_at`, and after `committed_after` if that is known.
    """
    commits: dict[tuple[str, int], Row] = {}
    polls: dict[int, datetime] = {}
    # where the tables of the time were removed, the times of commits are unknown
    with suppress(RemovedState):
        rows = moment.query(_COMMITTED.format(group=literal(group))).to_pylist()
        commits = {(row["topic"], row["partition"]): row for row in rows}
        polls = polls_before(moment.query, rows)
    found = []
    for row in moment.lag(group):
        commit = commits.get((row["topic"], row["partition"]), {})
        found.append(
            {
                **{name: row.get(name) for name in _LAG},
                "committed_at": commit.get("commit_timestamp") or commit.get("record_timestamp"),
                "committed_after": polls.get(commit["log_offset"]) if commit else None,
                "is_polled": bool(commit) and commit["log_partition"] == POLLED_PARTITION,
                "metadata": commit.get("metadata"),
                "leader_epoch": commit.get("leader_epoch"),
            }
        )
    return sorted(
        found,
        key=lambda row: (not is_affected(row), -(row["lag_seconds"] or 0), -(row["lag"] or 0), row["topic"], row["partition"]),
    )


def share_offsets_of(moment: Moment, group: str) -> list[Row]:
    """What the coordinator of a share group answered about its partitions; empty at a time whose table was removed."""
    if "share_offsets" not in moment.batch.versions:
        return []
    found: list[Row] = []
    with suppress(RemovedState):
        found = moment.query(_SHARE_OFFSETS.format(group=literal(group))).to_pylist()
    return found


def is_affected(row: Mapping[str, Any]) -> bool:
    """True if a rule found a defect of the partition."""
    return not row["unconsumed"] and status_words(row["status"]).tone in ("bad", "warn")


def figures_of(offsets: list[Row]) -> Row:
    """Sums and extremes over the partitions; None where none is known."""
    trends = [row for row in offsets if row["lag_slope_per_second"] is not None]
    windows = [row["slope_window_seconds"] for row in trends if row["slope_window_seconds"] is not None]
    # below 0 the committed offset is beyond the log end, and lag unknown
    lags = [row["lag"] for row in offsets if row["lag"] is not None and row["lag"] >= 0]
    times = [row["committed_at"] for row in offsets if row["committed_at"] is not None]
    polls = [row["committed_after"] for row in offsets if row["committed_after"] is not None]
    margins = [row["retention_margin_seconds"] for row in offsets if row["retention_margin_seconds"] is not None and row["lag"]]
    lost = [row["messages_lost"] for row in offsets if row["messages_lost"]]
    return {
        "partitions": len(offsets),
        "unknown_partitions": sum((row["lag"] is None or row["lag"] < 0) and row["group_offset"] is not None for row in offsets),
        "lag": sum(lags) if lags else None,
        **{
            name: sum(row[name] or 0 for row in trends) if trends else None
            for name in ("lag_slope_per_second", "produce_rate", "consume_rate")
        },
        "trend_partitions": len(trends),
        "slope_window_seconds": max(windows, default=None),
        "slope_window_seconds_least": min(windows, default=None),
        **greatest_age(offsets, "lag_method"),
        "last_commit_at": max(times, default=None),
        "last_commit_after": max(polls, default=None),
        "retention_margin_seconds": min(margins, default=None),
        "messages_lost": sum(lost) if lost else None,
    }


def _status(row: Row | None, stopped: list[Row], at: datetime) -> Row:
    if row is None:
        return {"status": None, "rule": None, "detail": None, "reasons": [], "facts": []}
    at = row["evaluated_at"] or at
    # one sentence is enough for partitions of one owner that stopped at one time
    details = [timed_text(f"{with_marks(each['words'])}.") for each in stopped] if len(stopped) > 1 else []
    found = [{**reason, "details": details if reason["rule"] == STOPPED else []} for reason in reasons(row["findings"] or [], at)]
    return {
        "status": row["status"],
        "rule": row["rule"],
        "detail": row["detail"],
        "burrow_status": row["burrow_status"],
        "reasons": found,
        # null in rows of an earlier layout
        "facts": [
            {**fact, "detail": fact_text(fact["fact"], fact["partitions"], fact["detail"], to_ms(at))}
            for fact in row.get("facts") or ()
        ],
    }


def _without(row: Row | None, *names: str) -> Row | None:
    return None if row is None else {name: value for name, value in row.items() if name not in names}


def _is_in_histories(moment: Moment, group: str) -> bool:
    return bool(moment.query(_IS_KNOWN.format(group=literal(group))).num_rows)
