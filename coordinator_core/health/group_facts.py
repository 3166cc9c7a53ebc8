"""Facts about a group that are no defect: they do not count for its status, and explain what its offsets show. Times in ms."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from coordinator_core.health.durations import duration
from coordinator_core.health.finding_phrases import clock, marked_clocks, partition_name, plural
from coordinator_core.health.offset_syncs import OffsetSync
from coordinator_core.health.timed_text import TimedText, timed_text, with_marks
from coordinator_core.health.unconsumed import Unconsumed, UnconsumedTopic
from coordinator_core.health.visible_names import visible


class FactKind(StrEnum):
    """Kinds of facts."""

    #: No member subscribes to a topic with committed offsets.
    NOT_SUBSCRIBED = "not_subscribed"
    #: Committed partitions that the topic does not have.
    UNKNOWN_PARTITION = "unknown_partition"
    #: An administrator sets offsets of the group steadily, such as MirrorMaker 2.
    OFFSET_SYNC = "offset_sync"


#: Kind → words of its sentences that come after the last name: of several partitions, and of one or of a topic.
_AFTER_NAMES: Mapping[str, tuple[str, str]] = {
    FactKind.NOT_SUBSCRIBED: (": not subscribed", ": not subscribed"),
    FactKind.UNKNOWN_PARTITION: (" among them)", ": the topic does not have this partition"),
    FactKind.OFFSET_SYNC: (" set by an admin client every ", " set by an admin client every "),
}


class Fact(NamedTuple):
    """A fact with its sentence.

    - `topic`, `partition`: None if it is about several of them. `partitions`: the number of partitions.
    - `since_ms`: start; None if it is unknown. `due_ms`: expiry of the first of the offsets; None if it is unknown or never.
    - `interval_ms`: usual time between two commits of a sync.
    """

    kind: FactKind
    detail: str
    topic: str | None = None
    partition: int | None = None
    partitions: int = 1
    since_ms: int | None = None
    due_ms: int | None = None
    interval_ms: int | None = None


def fact_of(found: UnconsumedTopic, at_ms: int) -> Fact:
    """The fact about partitions that no member can read."""
    expiry = f"; {text}" if (text := _expiry(found, at_ms)) else ""
    return Fact(
        FactKind(found.reason),
        timed_text(f"{_unconsumed(found, at_ms)}{expiry}."),
        found.topic,
        found.partition if found.partitions == 1 else None,
        found.partitions,
        found.since_ms,
        found.first_due_ms,
    )


def sync_fact(sync: OffsetSync, at_ms: int, known_since_ms: int) -> Fact:
    """The fact about offsets that an administrator sets; `known_since_ms` is the time since which commits were looked at."""
    topics = sorted({partition.topic for partition in sync.partitions})
    return Fact(
        FactKind.OFFSET_SYNC,
        timed_text(_sync(sync, topics, at_ms, known_since_ms)),
        topics[0] if len(topics) == 1 else None,
        sync.partitions[0].partition if len(sync.partitions) == 1 else None,
        len(sync.partitions),
        sync.since_ms,
        interval_ms=sync.interval_ms,
    )


def fact_text(kind: str, partitions: int, detail: str, at_ms: int) -> TimedText:
    """The sentence of a fact of that time, as a table has it, with its times. One of a later version has none."""
    words = _AFTER_NAMES.get(kind)
    # a name may have these words too, but only before the last ones
    start = -1 if words is None else detail.rfind(words[partitions == 1])
    return TimedText(detail) if start < 0 else timed_text(with_marks(detail[:start]) + marked_clocks(detail[start:], at_ms))


def _sync(sync: OffsetSync, topics: Sequence[str], at_ms: int, known_since_ms: int) -> str:
    """`Offsets of orders-0 are set by an admin client every 10 s since 12:04 UTC.`"""
    if len(sync.partitions) == 1:
        place = partition_name(*sync.partitions[0])
    else:
        place = visible(topics[0]) if len(topics) == 1 else plural(len(topics), "topic")
        place = f"{plural(len(sync.partitions), 'partition')} of {place}"
    interval = f"{sync.interval_ms} ms" if sync.interval_ms < 1_000 else duration(round(sync.interval_ms / 1000))
    every = f"set by an admin client every {interval}"
    is_over = at_ms > sync.goes_on_until_ms
    end = f" until {clock(sync.last_ms, at_ms)}" if is_over else ""
    if sync.since_ms is None:
        return f"Offsets of {place} {'were' if is_over else 'are'} {every}{end}, from before {clock(known_since_ms, at_ms)} on."
    start = f" {'from' if is_over else 'since'} {clock(sync.since_ms, at_ms)}"
    return f"Offsets of {place} {'were' if is_over else 'are'} {every}{start}{end}."


def _unconsumed(found: UnconsumedTopic, at_ms: int) -> str:
    """`orders-eu: not subscribed since 12:04 UTC`. The sentence begins with the name of the topic as it is."""
    if found.reason is Unconsumed.NOT_SUBSCRIBED:
        since = "" if found.since_ms is None else f" since {clock(found.since_ms, at_ms)}"
        return f"{visible(found.topic)}: not subscribed{since}"
    first = partition_name(found.topic, found.partition)
    if found.partitions == 1:
        return f"{first}: the topic does not have this partition"
    named = f"{plural(found.partitions, 'partition')} with offsets ({first} among them)"
    return f"{visible(found.topic)}: the topic does not have {named}"


def _expiry(found: UnconsumedTopic, at_ms: int) -> str:
    """`its offsets expire on 3 Dec, 12:04 UTC`; empty for never or unknown."""
    first, last = found.first_due_ms, found.last_due_ms
    if first is None or last is None:
        return ""
    one = found.partitions == 1
    what = ("its" if found.reason is Unconsumed.NOT_SUBSCRIBED or one else "their") + (" offset" if one else " offsets")
    if last <= at_ms:
        return f"{what} {'has' if one else 'have'} expired, and the broker removes what has expired"
    due = clock(first, at_ms)
    preposition = "on" if "," in due else "at"
    if clock(last, at_ms) == due:
        return f"{what} {'expires' if one else 'expire'} {preposition} {due}"
    return f"{what} expire from {due} on"
