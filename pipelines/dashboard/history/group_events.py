"""The events of a group as a list, the newest first: rebalances, resets, removals and last commits, each with its sentence."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from pipelines.dashboard.history.member_labels import MemberLabel
from pipelines.dashboard.words.events import rebalance_words, reset_words
from pipelines.dashboard.words.names import visible
from pipelines.dashboard.words.quantities import count, plural

Row = Mapping[str, Any]

#: A member change belongs to the rebalance that follows it: records of a classic rebalance share their time, those of a modern
#: one precede it by less than this.
_SOON = timedelta(seconds=1)
_REMOVALS = {
    "tombstone": "Offsets of {partitions} of {topic} were removed from the log",
    "expire": "Offsets of {partitions} of {topic} expired",
}
_GROUP_CHANGES = {
    "group_created": "Group created",
    "group_deleted": "Group deleted",
    "type_changed": "Group type changed",
}


def group_events(
    rebalances: Sequence[Row],
    member_changes: Sequence[Row],
    resets: Sequence[Row],
    removals: Sequence[Row],
    labels: Mapping[str, MemberLabel],
) -> list[dict[str, Any]]:
    """Rows with `at`, `kind` (rebalance, reset, removal or group) and `words`."""
    events = [*_rebalances(rebalances, member_changes, labels), *_resets(resets), *_group_changes(member_changes)]
    for row in removals:
        words = _REMOVALS[row["change"]].format(partitions=plural(row["partitions"], "partition"), topic=visible(row["topic"]))
        events.append({"at": row["at"], "kind": "removal", "words": words})
    return sorted(events, key=lambda event: event["at"], reverse=True)


def last_commits(
    offsets: Sequence[Row], members: Sequence[Row], labels: Mapping[str, MemberLabel], at: datetime, silent: timedelta
) -> dict[str, Any] | None:
    """The last commit as an event, if there was none for longer than `silent` although records are waiting."""
    times = [row["committed_at"] for row in offsets if row["committed_at"] is not None]
    waiting = sum(max(0, row["lag"] or 0) for row in offsets)
    if not times or not waiting or at - max(times) <= silent:
        return None
    names = sorted({labels[row["member_id"]].name for row in members if row["member_id"] in labels})
    if not members:
        still = "The group has no members"
    elif names and len(names) <= 3:
        still = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} still in the group"
    else:
        still = f"{plural(len(members), 'member')} {'is' if len(members) == 1 else 'are'} still in the group"
    return {"at": max(times), "kind": "commit", "words": f"Last commit. {still}; {count(waiting)} records are waiting"}


def _rebalances(rebalances: Sequence[Row], changes: Sequence[Row], labels: Mapping[str, MemberLabel]) -> list[dict[str, Any]]:
    found = []
    for row in rebalances:
        end = row["recorded_at"]
        near = [each for each in changes if end - _SOON <= each["at"] <= end]
        joined, left = (_names(near, change, labels) for change in ("member_joined", "member_left"))
        found.append({"at": end, "kind": "rebalance", "words": rebalance_words(row, joined, left)})
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
    return [
        {"at": row["at"], "kind": "group", "words": _GROUP_CHANGES[row["change"]]}
        for row in changes
        if row["change"] in _GROUP_CHANGES
    ]
