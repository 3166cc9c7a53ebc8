"""The events of a group as a list, the newest first: rebalances, resets, removals and stops, each with its sentence."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from coordinator_core.health import rule_word
from coordinator_core.health.timed_text import timed_text
from pipelines.dashboard.formatting.events import rebalance_words, reset_words
from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.quantities import count, duration, plural
from pipelines.dashboard.formatting.reasons import STOPPED, partition_name
from pipelines.dashboard.formatting.times import between, since
from pipelines.dashboard.pages.group.member_labels import MemberLabel

#: A run has at least this many rebalances, each soon after the one before.
_LEAST = 5
_NEXT_REBALANCE = timedelta(minutes=10)
#: Members of a run that its sentence names.
_MOST_LEAVING = 3

Row = Mapping[str, Any]

#: A member change belongs to the rebalance that follows it: records of a classic rebalance share their time, those of a modern
#: one precede it by less than this.
_SOON = timedelta(seconds=1)
_REMOVALS = {
    "tombstone": "Offsets of {partitions} of {topic} were removed from the log",
    "expire": "Offsets of {partitions} of {topic} expired",
    "moved": "Offsets of {partitions} of {topic} remained in an old partition of __consumer_offsets, which brokers do not load",
}
#: What a group does whose first commit since a removal is after, or before the removed one; and the next step.
_SKIPPED = ": the group skipped them. To read them, stop its members and reset its offsets with kafka-consumer-groups.sh"
_READ_AGAIN = ": the group reads them again. Check whether processing twice does harm"
_GROUP_CHANGES = {
    "group_created": "Group created",
    "group_deleted": "Group deleted",
    "moved": "Group moved to another partition of __consumer_offsets, and started there without its state",
    "type_changed": "Group type changed",
}
#: Of a group that the log had before the first batch: the broker may have removed its earlier records by compaction.
_FIRST_SEEN = "Oldest record of the group in the log, written before the first batch; when it was created is unknown"
_FIRST_POLLED = "First complete poll of the group; when it was created is unknown"


def group_events(
    rebalances: Sequence[Row],
    member_changes: Sequence[Row],
    resets: Sequence[Row],
    others: Sequence[dict[str, Any]],
    labels: Mapping[str, MemberLabel],
) -> list[dict[str, Any]]:
    """Rows with `at`, `kind` (rebalance, reset, group, or that of `others`) and `words`."""
    events = [*others, *_rebalances(rebalances, member_changes, labels), *_resets(resets), *_group_changes(member_changes)]
    return sorted(events, key=lambda event: event["at"], reverse=True)


def removal_events(removals: Sequence[Row]) -> list[dict[str, Any]]:
    """Removed offsets."""
    return [
        {
            "at": row["at"],
            "kind": "removal",
            "words": _REMOVALS[row["change"]].format(
                partitions=plural(row["partitions"], "partition"), topic=visible(row["topic"])
            ),
        }
        for row in removals
    ]


def return_events(returns: Sequence[Row]) -> list[dict[str, Any]]:
    """First commits after a removal, one event per topic and time: what the group skipped, or reads again."""

    def key(row: Row) -> tuple[Any, ...]:
        return row["at"], row["topic"]

    found = []
    for (at, topic), rows in groupby(sorted(returns, key=key), key=key):
        jumps = [row["to_offset"] - row["from_offset"] for row in rows]
        where = f"{plural(len(jumps), 'partition')} of {visible(topic)}"
        moved = f"{count(abs(sum(jumps)))} offsets {'after' if sum(jumps) >= 0 else 'before'} the removed ones"
        effect = _SKIPPED if sum(jumps) > 0 else _READ_AGAIN if sum(jumps) < 0 else ""
        found.append({"at": at, "kind": "return", "words": f"First commit on {where} since the removal, {moved}{effect}"})
    return found


def stops(
    offsets: Sequence[Row], findings: Sequence[Row], members: Mapping[str, MemberLabel], now: datetime
) -> list[dict[str, Any]]:
    """The last commit of partitions whose commits have stopped, as events; partitions of one owner and time are one event."""
    stopped = {(row["topic"], row["partition"]) for row in findings if rule_word(row["rule"]) == STOPPED}
    rows = [row for row in offsets if (row["topic"], row["partition"]) in stopped and row["committed_at"] is not None]

    def key(row: Row) -> tuple[Any, ...]:
        return row["committed_at"], row["topic"], row["consumer_id"] or ""

    found = []
    for (at, _, owner), group in groupby(sorted(rows, key=key), key=key):
        partitions = list(group)
        waiting = sum(max(0, row["lag"] or 0) for row in partitions)
        where = partition_name(partitions[0]["topic"], partitions[0]["partition"])
        if len(partitions) > 1:
            where = f"{plural(len(partitions), 'partition')} of {visible(partitions[0]['topic'])}"
        made = since(at, now)
        if any(row["is_polled"] for row in partitions):
            polls = [row["committed_after"] for row in partitions]
            made = between(None if None in polls else min(polls), at, now)
        its = "it" if len(partitions) == 1 else "them"
        still = f"{visible(members[owner].name, 60)} still owns {its}" if owner in members else f"nobody owns {its}"
        found.append(
            {
                "at": at,
                "kind": "stop",
                "words": timed_text(f"Last commit on {where}, {made}; {still}, and {count(waiting)} records are waiting"),
            }
        )
    return found


def _rebalances(rebalances: Sequence[Row], changes: Sequence[Row], labels: Mapping[str, MemberLabel]) -> list[dict[str, Any]]:
    found = []
    for row in rebalances:
        end = row["recorded_at"]
        near = [each for each in changes if each["at"] <= end and end - each["at"] <= _SOON]
        joined, left = (_names(near, change, labels) for change in ("member_joined", "member_left"))
        found.append(
            {
                "at": end,
                "kind": "rebalance",
                "words": rebalance_words(row, joined, left),
                "left": left,
                "is_polled": row["is_polled"],
            }
        )
    return found


def _names(changes: Sequence[Row], change: str, labels: Mapping[str, MemberLabel]) -> list[str]:
    ids = [row["member_id"] for row in changes if row["change"] == change]
    return [labels[member].name for member in ids if member in labels]


def _resets(resets: Sequence[Row]) -> list[dict[str, Any]]:
    """Jumps of one topic at one time, in one direction, are one event."""

    def key(row: Row) -> tuple[Any, ...]:
        return row["reset_at"], row["topic"], row["direction"], row["reset_by"]

    found = []
    for _, rows in groupby(sorted(resets, key=key), key=key):
        first, *others = rows
        found.append({"at": first["reset_at"], "kind": "reset", "words": reset_words(first, 1 + len(others))})
    return found


def _group_changes(changes: Sequence[Row]) -> list[dict[str, Any]]:
    changed = [row for row in changes if row["change"] in _GROUP_CHANGES]
    return [{"at": row["at"], "kind": "group", "words": _group_words(row)} for row in changed]


def _group_words(row: Row) -> str:
    if row["change"] == "group_created" and row["may_be_older"]:
        return _FIRST_POLLED if row["is_polled"] else _FIRST_SEEN
    return _GROUP_CHANGES[row["change"]]


def folded(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events, the newest first; a run of rebalances is one of kind `storm` with its `events`.

    An alert does not end a run: a storm fires one while it lasts.
    """
    found: list[dict[str, Any]] = []
    run: list[dict[str, Any]] = []
    alerts: list[dict[str, Any]] = []
    for event in events:
        if run and event["kind"] == "alert":
            alerts.append(event)
            continue
        if run and (event["kind"] != "rebalance" or run[-1]["at"] - event["at"] > _NEXT_REBALANCE):
            found += _in_order([*_folded(run), *alerts])
            run, alerts = [], []
        if event["kind"] == "rebalance":
            run.append(event)
        else:
            found.append(event)
    return [*found, *_in_order([*_folded(run), *alerts])]


def _in_order(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(events, key=lambda event: event["at"], reverse=True)


def _folded(run: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(run) < _LEAST:
        return run
    last, first = run[0]["at"], run[-1]["at"]
    at_least = "At least " if any(event["is_polled"] for event in run) else ""
    words = f"{at_least}{len(run)} rebalances within {duration((last - first).total_seconds())}{_leaving(run)}"
    return [{"at": last, "kind": "storm", "words": words, "events": run}]


def _leaving(run: Sequence[Row]) -> str:
    """The members that left again and again, if one caused at least a quarter of the rebalances: half of them are its returns."""
    times = Counter(name for event in run for name in event["left"])
    most = [name for name, number in times.most_common(_MOST_LEAVING) if 4 * number >= len(run) and number > 1]
    texts = [f"{visible(name, 40)} left or timed out {times[name]} times" for name in most]
    return f": {', '.join(texts)}" if texts else ""
