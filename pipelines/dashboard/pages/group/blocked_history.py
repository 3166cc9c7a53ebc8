"""Open transactions that blocked a group in a span: rows for the page and its JSON, and events."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.quantities import duration, plural
from pipelines.dashboard.formatting.reasons import partition_name
from pipelines.dashboard.history.span import Span
from pipelines.dashboard.state.moment import Moment
from pipelines.lag.inputs.open_transactions import as_row
from pipelines.lag.tables.blocked_history import BlockedInterval, blocked_intervals, has_blocked_partitions
from pipelines.tables.store import is_in, literal, timestamp_literal

Row = dict[str, Any]

#: Longest distance of two rows of `lag_history` that are not thinned.
_BEFORE = timedelta(minutes=20)
_BLOCKED = """
SELECT sampled_at, topic, blocked FROM lag_history
WHERE group_id = {group} AND sampled_at BETWEEN {start} AND {end} AND blocked IS NOT NULL ORDER BY sampled_at
"""
_ENDS = """
SELECT transactional_id, record_timestamp, commits, aborts FROM transaction_history
WHERE {ids} AND state <> 'Elsewhere' AND commits + aborts > 0
  AND record_timestamp BETWEEN {start} AND {end} ORDER BY record_timestamp
"""


def blocked_rows(moment: Moment, group: str, span: Span) -> list[Row]:
    """A row per transaction and partition, in the order of their starts.

    `until` is the end of the transaction, or the first sample in which it did not block any more; None while it blocks.
    `outcome` is `committed` or `aborted`, None if transactions are not read.
    """
    if "lag_history" not in moment.batch.versions or not has_blocked_partitions(moment):
        return []
    times = {"start": timestamp_literal(span.start - _BEFORE), "end": timestamp_literal(span.end)}
    found = blocked_intervals(moment.query(_BLOCKED.format(group=literal(group), **times)).to_pylist())
    found = [each for each in found if each.until is None or each.until >= span.start]
    ends = _ends(moment, found)
    return sorted((_row(each, ends) for each in found), key=lambda row: (row["blocked_since"], row["topic"], row["partition"]))


def _ends(moment: Moment, found: Sequence[BlockedInterval]) -> list[Row]:
    """Ends of the transactions of these intervals, as `transaction_history` has them."""
    ids = {each.transaction.transactional_id for each in found if each.until is not None} - {None}
    until = max((each.until for each in found if each.until is not None), default=None)
    if not ids or until is None or not moment.batch.has_transactions:
        return []
    start = min(each.seen_at for each in found)
    sql = _ENDS.format(
        ids=is_in("transactional_id", [name for name in ids if name is not None]),
        start=timestamp_literal(start),
        end=timestamp_literal(until),
    )
    rows: list[Row] = moment.query(sql).to_pylist()
    return rows


def _row(found: BlockedInterval, ends: Sequence[Row]) -> Row:
    end = next(
        (
            row
            for row in ends
            if row["transactional_id"] == found.transaction.transactional_id
            and found.until is not None
            and found.seen_at <= row["record_timestamp"] <= found.until
        ),
        None,
    )
    outcome = None
    if end is not None and not (end["commits"] and end["aborts"]):
        outcome = "committed" if end["commits"] else "aborted"
    return {
        "topic": found.partition.topic,
        "partition": found.partition.partition,
        **as_row(found.transaction),
        "until": found.until if end is None else end["record_timestamp"],
        "outcome": outcome,
    }


def blocked_events(rows: Sequence[Row]) -> list[Row]:
    """The start and the end of each transaction; partitions of one transaction are one event."""

    def key(row: Row) -> tuple[Any, ...]:
        return row["blocked_since"], row["topic"], transaction_name(row), row["until"] or datetime.max.replace(tzinfo=UTC)

    found = []
    for _, same in groupby(sorted(rows, key=key), key=key):
        first, *others = same
        where = partition_name(first["topic"], first["partition"])
        if others:
            where = f"{plural(1 + len(others), 'partition')} of {visible(first['topic'])}"
        name = transaction_name(first)
        since = "was open, at the latest" if first["blocked_since_method"] == "sample" else "began"
        found.append({"at": first["blocked_since"], "kind": "transaction", "words": f"{name} {since}, and blocks {where}"})
        if first["until"] is not None:
            found[-1]["words"] = f"{name} {since}, and blocked {where}"
            span = duration((first["until"] - first["blocked_since"]).total_seconds())
            least = "at least " if first["blocked_since_method"] == "sample" else ""
            end = "ended" if first["outcome"] is None else f"was {first['outcome']}"
            ended = f"{name} {end}, after {least}{span}"
            found.append({"at": first["until"], "kind": "transaction_end", "words": f"{ended}: {where} can be read again"})
    return found


def transaction_name(row: Mapping[str, Any]) -> str:
    """`The transaction of ledger`, or of a producer if the id is unknown."""
    if row["blocked_by_transactional_id"] is not None:
        return f"The transaction of {visible(row['blocked_by_transactional_id'], 60)}"
    producer = row["blocked_by_producer_id"]
    return "A transaction" if producer is None else f"The transaction of producer {producer}"
