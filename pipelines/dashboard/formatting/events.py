"""Events of a group in words: rebalances, resets, commits."""

from collections.abc import Mapping
from typing import Any

from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.quantities import count, duration, plural

Row = Mapping[str, Any]

_TRIGGERS = {
    "subscription_changed": "a member changed its subscription",
    "topics_changed": "the subscribed topics changed",
    "revoked_partitions": "assigns the partitions that the rebalance before revoked",
}
_OUTCOMES = {
    "in_progress": "not complete",
    "superseded": "superseded by the next one",
    "deleted": "ended by the deletion of the group",
}


def rebalance_words(row: Row, joined: list[str], left: list[str]) -> str:
    """`Rebalance 16 → 17: w2 left; 2 partitions moved, 3 min 12 s without an owner`. Names are those of the members."""
    before = "" if row["from_generation"] is None else f"{row['from_generation']} → "
    # a poll does not know the generations of a classic group
    named = "Rebalance" if row["to_generation"] is None else f"Rebalance {before}{row['to_generation']}"
    parts = [_cause(row, joined, left), _cost(row)]
    outcome = _OUTCOMES.get(row["outcome"])
    text = "; ".join(part for part in (*parts, outcome) if part)
    return named + (f": {text}" if text else "")


def _cause(row: Row, joined: list[str], left: list[str]) -> str:
    parts = [
        f"{words} {verb}"
        for words, verb in (
            (_people(joined, row["members_joined"]), "joined"),
            (_people(left, row["members_left"]), "left or timed out"),
        )
        if words
    ]
    if row["trigger"] == "member_replaced":
        parts.append("a static member returned")
    return " and ".join(parts) or _TRIGGERS.get(row["trigger"], "")


def _people(names: list[str], number: int | None) -> str:
    if not number:
        return ""
    if len(names) != number or number > 3:
        return plural(number, "member")
    return ", ".join(visible(name, 40) for name in sorted(names))


def _cost(row: Row) -> str:
    moved, gap = row["partitions_moved"], row["seconds_without_owner"]
    if not moved:
        return "no partition moved"
    text = f"{plural(moved, 'partition')} moved"
    # before its first rebalance the group did not exist
    return text if gap is None or row["from_generation"] is None else f"{text}, {duration(gap)} without an owner"


_PARTIES = {"admin": "an administrator", "member": "a member", "unknown": "an unknown client"}


def reset_words(row: Row, partitions: int) -> str:
    """`Reset of orders-1 from 950 to 20 (−930) by an administrator`; of several partitions their number and the sum."""
    party = _PARTIES.get(row["reset_by"], row["reset_by"])
    if partitions > 1:
        return f"Reset of {plural(partitions, 'partition')} of {visible(row['topic'])} by {party}, {row['direction']}"
    where = f"{visible(row['topic'])}-{row['partition']}"
    if row["from_offset"] is None:
        return f"Reset of {where} back to {count(row['to_offset'])} by {party}"
    size = row["to_offset"] - row["from_offset"]
    or_later = " or later" if row["from_is_least"] else ""
    offsets = f"from {count(row['from_offset'])}{or_later} to {count(row['to_offset'])}"
    moved = f"{'+' if size > 0 else '−'}{count(abs(size))}{' at least' if or_later else ''}"
    return f"Reset of {where} {offsets} ({moved}) by {party}"
