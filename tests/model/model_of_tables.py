"""Status of groups at a time, from the events in the tables and by the model: no columns are used. Times in ms."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from model_of_status import ExpiryEvent, GroupHistory, OwnerEvent, PendingSpan, evidence_at
from model_of_trends import GrowthStart

from coordinator_core.codec import Record, decode
from coordinator_core.codec.messages.consumer import ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import (
    DEFAULT_SETTINGS,
    EndOffsetSample,
    GroupEvidence,
    GroupStatus,
    GroupSubscription,
    StatusSettings,
    evaluate,
)
from coordinator_core.health.sample_tables import SAME_SAMPLE_MS
from pipelines.lag.past.lag_at import proven_until_ms
from pipelines.lag.past.past_groups import PastGroups
from pipelines.lag.past.samples_at import samples_until
from pipelines.lag.tables.status_rows import status_columns
from pipelines.query.engine import Snapshot
from pipelines.query.poll_times import is_polled
from pipelines.runtime.timestamps import at_ms as timestamp
from pipelines.runtime.timestamps import to_ms
from pipelines.tables.store import is_in

Samples = tuple[EndOffsetSample, ...]


def model_status_at(
    snapshot: Snapshot, at: datetime, groups: Sequence[str], settings: StatusSettings = DEFAULT_SETTINGS
) -> list[dict[str, Any]]:
    """Rows of `group_status` of these groups, without the batch; as `group_status_at` returns them."""
    at_ms = to_ms(at)
    past = PastGroups(snapshot, at_ms, groups)
    rows = []
    for group in groups:
        evidence = evidence_at(_history(snapshot, past, group, at_ms), at_ms, settings)
        rows.append(status_row(evaluate(evidence), evidence))
    return rows


def _history(snapshot: Snapshot, past: PastGroups, group: str, at_ms: int) -> GroupHistory:
    commits = tuple(past.commits(group))
    partitions = {commit.partition for commit in commits}
    samples = _with_missing_partitions(samples_until(snapshot, at_ms, {partition.topic for partition in partitions}))
    return GroupHistory(
        group,
        commits,
        {partition: taken for partition, taken in samples.items() if partition in partitions},
        past.memberships(group),
        past.rebalances(group),
        tuple(_expiries(past, group, at_ms)),
        tuple(PendingSpan(commit) for commit in past.pending(group)),
        blocked_by=past.blocked_by.get(group),
        read_until_ms=proven_until_ms(snapshot, past.then.batch, at_ms),
        pending_offsets=_pending_offsets(past, group),
        falling={TopicPartition(*key[1:]): GrowthStart(*start) for key, start in past.falling.items() if key[0] == group},
        owners=tuple(
            OwnerEvent(at_ms, TopicPartition(*key[1:]), *owner) for key, owner in past.owners.items() if key[0] == group
        ),
        subscription=_subscription(past.then, group),
        ended=_ended(past.then, group, at_ms, samples),
        others={partition: taken for partition, taken in samples.items() if partition not in partitions},
        is_polled=is_polled(past.then.batch),
    )


def _pending_offsets(past: PastGroups, group: str) -> dict[TopicPartition, int]:
    rows = past.then.query(f"SELECT topic, partition, committed_offset FROM pending_offsets WHERE {is_in('group_id', [group])}")
    found: dict[TopicPartition, int] = {}
    for row in rows.to_pylist():
        partition = TopicPartition(row["topic"], row["partition"])
        found[partition] = max(found.get(partition, 0), row["committed_offset"])
    return found


def _subscription(then: Snapshot, group: str) -> GroupSubscription | None:
    """From the rows of members, one by one; None if one of them is unknown."""
    named = is_in("group_id", [group])
    states = then.query(f"SELECT state, subscribed_topics FROM groups WHERE {named}").to_pylist()
    members = then.query(f"SELECT subscribed_topics, subscribed_regex FROM members WHERE {named}").to_pylist()
    if not members or any(row["subscribed_topics"] is None for row in members):
        return None
    records = [
        decode(row["key"], row["value"]) for row in then.query(f"SELECT key, value FROM group_records WHERE {named}").to_pylist()
    ]
    resolved = {
        record.key.regular_expression: record.value.topics
        for record in records
        if isinstance(record, Record)
        and isinstance(record.key, ConsumerGroupRegularExpressionKey)
        and isinstance(record.value, ConsumerGroupRegularExpressionValue)
    }
    topics = {topic for row in members for topic in row["subscribed_topics"]}
    for row in members:
        if row["subscribed_regex"] is not None:
            if row["subscribed_regex"] not in resolved:
                return None
            topics.update(resolved[row["subscribed_regex"]])
    owned = {row["topic"] for row in then.query(f"SELECT topic FROM assignments WHERE {named}").to_pylist()}
    return None if None in owned else GroupSubscription(states[0]["state"], topics, owned)


def _ended(then: Snapshot, group: str, at_ms: int, samples: Mapping[TopicPartition, Samples]) -> dict[str, int]:
    """Times at which the last owner of a topic lost its partitions."""
    named = is_in("group_id", [group])
    if "ownership_history" not in then.batch.versions:
        return {}
    rows = then.query(f"SELECT topic, lost, record_timestamp FROM ownership_history WHERE {named}").to_pylist()
    lost = sorted((to_ms(row["record_timestamp"]), row["topic"]) for row in rows if row["lost"])
    deleted = {partition.topic for partition, taken in samples.items() if taken[-1].reason == "unknown_topic_or_partition"}
    return {topic: min(at, at_ms) for at, topic in lost if topic not in deleted}


def _with_missing_partitions(samples: Mapping[TopicPartition, Samples]) -> dict[TopicPartition, Samples]:
    """The samples with the reason `unknown_partition` where another partition of the topic has a log end at that time."""
    seen: dict[str, int] = {}
    for (topic, _), taken in samples.items():
        if taken[-1].log_end is not None:
            seen[topic] = max(seen.get(topic, 0), taken[-1].answered_at_ms)
    found = dict(samples)
    for partition, taken in samples.items():
        newest, seen_ms = taken[-1], seen.get(partition.topic)
        is_recent = seen_ms is not None and newest.answered_at_ms - seen_ms <= SAME_SAMPLE_MS
        if newest.reason == "unknown_topic_or_partition" and is_recent:
            found[partition] = (*taken[:-1], replace(newest, reason="unknown_partition"))
    return found


def _expiries(past: PastGroups, group: str, at_ms: int) -> list[ExpiryEvent]:
    sql = (
        f"SELECT topic, partition, expires_at FROM expiring_offsets WHERE expires_at IS NOT NULL AND {is_in('group_id', [group])}"
    )
    rows = past.then.query(sql).to_pylist()
    return [ExpiryEvent(at_ms, TopicPartition(row["topic"], row["partition"]), to_ms(row["expires_at"])) for row in rows]


def status_row(status: GroupStatus, evidence: GroupEvidence) -> dict[str, Any]:
    """A row of `group_status`, without the batch."""
    most = status.max_lag
    return {
        **status_columns(status),
        "burrow_status": str(status.burrow_status),
        "partitions": len(evidence.partitions),
        "unknown_partitions": sum(partition.lag.lag is None for partition in evidence.partitions),
        "complete": status.complete,
        "total_lag": None if most is None else status.total_lag,
        "max_lag": None if most is None else most.current_lag,
        "max_lag_topic": None if most is None else most.partition.topic,
        "max_lag_partition": None if most is None else most.partition.partition,
        "evaluated_at": timestamp(status.at_ms),
    }
