"""Positions that no member can read, from the subscriptions of groups in the tables. Times in ms.

Subscriptions of a group are known if it has members, the metadata of each was read, and each regular expression was resolved.
Other groups have no such positions: groups of simple consumers, empty groups, and other protocol types than `consumer`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec import Record, decode
from coordinator_core.codec.arrays import Numbers
from coordinator_core.codec.messages.consumer import ConsumerGroupRegularExpressionKey
from coordinator_core.health import GroupSubscription, LagReason, StatusSettings, Unconsumed, UnconsumedTopic
from pipelines.lag.columns import KEY, select
from pipelines.query.engine import Snapshot
from pipelines.runtime.timestamps import to_ms
from pipelines.tables.store import is_in

#: The reason of a failed sample whose topic does not exist.
_UNKNOWN_TOPIC = "unknown_topic_or_partition"
#: Record type of ConsumerGroupRegularExpression.
_REGULAR_EXPRESSION = 16

_KNOWN = "g.member_count > 0 AND cardinality(g.subscribed_topics) > 0"
#: A cheap query of a table that changes seldom: without such a group nothing else has to be read.
_ANY_KNOWN = f"SELECT g.group_id FROM groups g WHERE {_KNOWN} LIMIT 1"
_WITH_OTHER_TOPICS = f"""
SELECT DISTINCT o.group_id
FROM (SELECT DISTINCT group_id, topic FROM offsets) o JOIN groups g ON g.group_id = o.group_id
WHERE {_KNOWN} AND NOT array_contains(g.subscribed_topics, o.topic)
"""
_SUBSCRIPTIONS = f"SELECT g.group_id, g.state, g.subscribed_topics FROM groups g WHERE {_KNOWN} AND {{named}}"
_EXPRESSIONS = "SELECT DISTINCT group_id, subscribed_regex FROM members WHERE subscribed_regex IS NOT NULL AND {named}"
_RESOLVED = f"SELECT key FROM group_records WHERE record_type = {_REGULAR_EXPRESSION} AND {{named}}"
_OWNED = "SELECT DISTINCT group_id, topic FROM assignments WHERE {named}"
#: A topic of which no member has a partition now: its last owner lost it with the subscription, or with all its partitions.
_LOST = """
SELECT group_id, topic, max(record_timestamp) AS lost_at FROM ownership_history
WHERE cardinality(lost) > 0 AND topic IS NOT NULL AND record_timestamp IS NOT NULL AND {named} GROUP BY group_id, topic
"""
_EXPIRIES = "SELECT group_id, topic, partition, expires_at FROM expiring_offsets WHERE expires_at IS NOT NULL AND {named}"

_Topic = tuple[str, str]


@dataclass(frozen=True)
class UnconsumedPositions:
    """The reason for each position that no member can read, None for others; and these positions by group and topic."""

    reasons: pa.Array
    topics: Mapping[str, tuple[UnconsumedTopic, ...]] = field(default_factory=dict)

    @classmethod
    def none(cls, positions: int) -> "UnconsumedPositions":
        """All of so many positions may be read, or nothing is known about them."""
        return cls(pa.nulls(positions, pa.string()))

    @property
    def is_consumed(self) -> Numbers:
        """True for positions that count for the status of their group."""
        found: Numbers = self.reasons.is_null().to_numpy(zero_copy_only=False)
        return found


def unconsumed_positions(
    snapshot: Snapshot, positions: pa.Table, lag_reason: pa.ChunkedArray, at_ms: int, settings: StatusSettings
) -> UnconsumedPositions:
    """Find the committed positions that no member can read, at the batch of `snapshot`.

    `positions` have the columns of KEY and `committed_offset`, and `lag_reason` the reason of each. While the job catches up,
    subscriptions of now are unknown.
    """
    nothing = UnconsumedPositions.none(positions.num_rows)
    if pc.any(pc.equal(lag_reason, str(LagReason.CATCHING_UP))).as_py() or not select(snapshot, _ANY_KNOWN).num_rows:
        return nothing
    missing = pc.fill_null(pc.equal(lag_reason, str(LagReason.UNKNOWN_PARTITION)), False)
    groups = {
        *select(snapshot, _WITH_OTHER_TOPICS)["group_id"].to_pylist(),
        *positions["group_id"].filter(missing).unique().to_pylist(),
    }
    subscriptions = _subscriptions(snapshot, groups) if groups else {}
    if not subscriptions:
        return nothing
    committed = pc.and_(
        positions["committed_offset"].is_valid(), pc.is_in(positions["group_id"], pa.array(list(subscriptions), pa.string()))
    )
    rows = np.flatnonzero(committed.to_numpy())
    taken = positions.select(KEY).append_column("lag_reason", lag_reason).take(pa.array(rows)).to_pylist()
    ended = _ended(snapshot, subscriptions, taken, at_ms)
    reasons = [_reason(row, subscriptions, ended, at_ms, settings) for row in taken]
    column = np.full(positions.num_rows, None, object)
    column[rows] = reasons
    found = [(row, reason) for row, reason in zip(taken, reasons, strict=True) if reason is not None]
    return UnconsumedPositions(pa.array(column, pa.string()), _by_group(snapshot, found, ended)) if found else nothing


def _reason(
    row: Mapping[str, Any],
    subscriptions: Mapping[str, GroupSubscription],
    ended: Mapping[_Topic, int],
    at_ms: int,
    settings: StatusSettings,
) -> Unconsumed | None:
    subscription = subscriptions[row["group_id"]]
    if subscription.lacks(row["topic"], ended.get((row["group_id"], row["topic"])), at_ms, settings):
        return Unconsumed.NOT_SUBSCRIBED
    is_missing = row["lag_reason"] == LagReason.UNKNOWN_PARTITION
    return Unconsumed.UNKNOWN_PARTITION if is_missing and subscription.is_known else None


def _subscriptions(snapshot: Snapshot, groups: Collection[str]) -> dict[str, GroupSubscription]:
    """Subscriptions of these groups, where they are known."""
    named = is_in("group_id", groups)
    known = {row["group_id"]: row for row in select(snapshot, _SUBSCRIPTIONS.format(named=f"g.{named}")).to_pylist()}
    if not known:
        return {}
    resolved = set()
    expressions = select(snapshot, _EXPRESSIONS.format(named=named)).to_pylist()
    for key in select(snapshot, _RESOLVED.format(named=named))["key"].to_pylist() if expressions else ():
        match decode(key, None):
            case Record(key=ConsumerGroupRegularExpressionKey(group_id=group, regular_expression=expression)):
                resolved.add((group, expression))
    unknown = {row["group_id"] for row in expressions if (row["group_id"], row["subscribed_regex"]) not in resolved}
    owned: dict[str, set[str]] = {}
    for row in select(snapshot, _OWNED.format(named=named)).to_pylist():
        if row["topic"] is None:
            # the topic of an assignment has no known name, so it may be any
            unknown.add(row["group_id"])
        owned.setdefault(row["group_id"], set()).add(row["topic"])
    return {
        group: GroupSubscription(row["state"], frozenset(row["subscribed_topics"]), owned.get(group, ()))
        for group, row in known.items()
        if group not in unknown
    }


def _ended(snapshot: Snapshot, groups: Collection[str], rows: Sequence[Mapping[str, Any]], at_ms: int) -> dict[_Topic, int]:
    """Time at which the last member lost its partitions of a topic, where the history has it.

    Partitions of a deleted topic are lost before the subscription ends.
    """
    if "ownership_history" not in snapshot.batch.versions:
        return {}
    deleted = {(row["group_id"], row["topic"]) for row in rows if row["lag_reason"] == _UNKNOWN_TOPIC}
    found = select(snapshot, _LOST.format(named=is_in("group_id", groups))).to_pylist()
    times = {(row["group_id"], row["topic"]): min(to_ms(row["lost_at"]), at_ms) for row in found}
    return {topic: at for topic, at in times.items() if topic not in deleted}


def _by_group(
    snapshot: Snapshot, found: Sequence[tuple[Mapping[str, Any], Unconsumed]], ended: Mapping[_Topic, int]
) -> dict[str, tuple[UnconsumedTopic, ...]]:
    partitions: dict[tuple[str, str, Unconsumed], list[int]] = {}
    for row, reason in found:
        partitions.setdefault((row["group_id"], row["topic"], reason), []).append(row["partition"])
    named = is_in("group_id", {group for group, _, _ in partitions})
    expiries = {
        (row["group_id"], row["topic"], row["partition"]): to_ms(row["expires_at"])
        for row in select(snapshot, _EXPIRIES.format(named=named)).to_pylist()
    }
    topics: dict[str, list[UnconsumedTopic]] = {}
    for (group, topic, reason), numbers in sorted(partitions.items()):
        due = [expiries.get((group, topic, number)) for number in numbers]
        times = [at for at in due if at is not None]
        first, last = (min(times), max(times)) if len(times) == len(due) else (None, None)
        since = ended.get((group, topic)) if reason is Unconsumed.NOT_SUBSCRIBED else None
        topics.setdefault(group, []).append(UnconsumedTopic(topic, reason, len(numbers), min(numbers), since, first, last))
    return {group: tuple(of_group) for group, of_group in topics.items()}
