"""The open transactions that blocked positions of groups at a past time, and the times from which to which they did."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import OpenTransaction
from pipelines.lag.inputs.open_transactions import from_row
from pipelines.query.engine import Queries
from pipelines.tables.store import is_in, timestamp_literal

_ROWS = """
SELECT group_id, sampled_at, topic, blocked FROM lag_history WHERE {groups} AND sampled_at <= {until} AND blocked IS NOT NULL
  AND sampled_at >= (
    SELECT max(sampled_at) FROM lag_history WHERE {groups} AND sampled_at <= {until}
  ) - INTERVAL '25' HOUR
ORDER BY sampled_at
"""
_COLUMNS = "SELECT * FROM lag_history LIMIT 0"


class BlockedInterval(NamedTuple):
    """An open transaction and a position, from the first sample that showed it to the first one that did not.

    `until` is None if the last sample shows it.
    """

    partition: TopicPartition
    transaction: OpenTransaction
    seen_at: datetime
    until: datetime | None


def blocked_at(tables: Queries, at: datetime, groups: Collection[str]) -> dict[str, dict[TopicPartition, OpenTransaction]]:
    """By group, the open transactions at its positions as of the newest sample until a time; nothing for unknown groups."""
    if not groups or not has_blocked_partitions(tables):
        return {}
    sql = _ROWS.format(groups=is_in("group_id", groups), until=timestamp_literal(at))
    found: dict[str, tuple[datetime, dict[TopicPartition, OpenTransaction]]] = {}
    for row in tables.query(sql).to_pylist():
        sampled_at, blocked = found.get(row["group_id"], (None, {}))
        if sampled_at != row["sampled_at"]:
            # rows of all topics of a group have the same time
            blocked = {}
        found[row["group_id"]] = row["sampled_at"], blocked | dict(_transactions(row))
    return {group: blocked for group, (_, blocked) in found.items()}


def has_blocked_partitions(tables: Queries) -> bool:
    """False for `lag_history` of a layout before 1.3."""
    return "blocked" in tables.query(_COLUMNS).column_names


def blocked_intervals(rows: Sequence[Mapping[str, Any]]) -> list[BlockedInterval]:
    """The intervals in rows of `lag_history` of one group, in the order of time, with all topics at each time."""
    open_since: dict[TopicPartition, tuple[OpenTransaction, datetime]] = {}
    found: list[BlockedInterval] = []
    for at, blocked in _by_time(rows):
        for partition, (before, seen_at) in list(open_since.items()):
            if partition not in blocked or _is_another(before, blocked[partition]):
                del open_since[partition]
                found.append(BlockedInterval(partition, before, seen_at, at))
        for partition, transaction in blocked.items():
            # a later sample may know more about the same transaction
            open_since[partition] = transaction, open_since.get(partition, (transaction, at))[1]
    found += [BlockedInterval(partition, *begun, None) for partition, begun in open_since.items()]
    return sorted(found, key=lambda each: (each.seen_at, each.partition))


def _is_another(before: OpenTransaction, after: OpenTransaction) -> bool:
    """True for another producer, or another start from the same source."""
    if None not in (before.producer_id, after.producer_id) and before.producer_id != after.producer_id:
        return True
    return before.method == after.method and before.since_ms != after.since_ms


def _by_time(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[datetime, dict[TopicPartition, OpenTransaction]]]:
    times: dict[datetime, dict[TopicPartition, OpenTransaction]] = {}
    for row in rows:
        times.setdefault(row["sampled_at"], {}).update(_transactions(row))
    yield from sorted(times.items())


def _transactions(row: Mapping[str, Any]) -> Iterator[tuple[TopicPartition, OpenTransaction]]:
    for each in row["blocked"] or ():
        transaction = from_row(each)
        if transaction is not None:
            yield TopicPartition(row["topic"], each["partition"]), transaction
