"""The page of the offsets topic: what the job reads, who writes it, what could not be decoded, and how long batches take."""

from typing import Any

from pipelines.dashboard.history.default_span import span_of_samples
from pipelines.dashboard.pages.offsets_topic.log_history import LogQueries, read_rates
from pipelines.dashboard.pages.parts.page import Query
from pipelines.dashboard.state.moment import Moment
from pipelines.query.snapshots.transactions_summary import summarize_transactions

Row = dict[str, Any]


def offsets_topic_page(moment: Moment, query: Query) -> Row:
    """The model of the page. Raises UsageError for an invalid span."""
    span = span_of_samples(moment, query.get("span"))
    queries = LogQueries(moment, span)
    positions, batches = queries.positions(), queries.batches()
    writers, counted_seconds = queries.writers()
    quarantine, quarantined = queries.quarantine()
    rates = read_rates(positions)
    maintained_at, maintaining_at = queries.maintenance()
    return {
        "span": {"start": span.start, "end": span.end, "text": span.text},
        "batch": {"era": moment.batch.era, "writer_epoch": moment.batch.generation, "records_read": moment.batch.records_read},
        "partitions": _partitions(moment, rates),
        "rates": [{"log_partition": partition, "points": points} for partition, points in rates.items()],
        "writers": writers,
        "counted_seconds": counted_seconds,
        "quarantine": quarantine,
        "quarantined": quarantined,
        "batches": batches,
        "maintained_at": maintained_at,
        "maintaining_at": maintaining_at,
        "transactions": _transactions(moment),
    }


def _transactions(moment: Moment) -> Row | None:
    """Read the counts of `__transaction_state`; None if the job does not read it."""
    offsets = moment.batch.transaction_offsets
    if offsets is None:
        return None
    summary = summarize_transactions(moment.query)
    return {
        "log_partitions": len(offsets),
        "next_offsets": [{"log_partition": partition, "next_offset": offset} for partition, offset in sorted(offsets.items())],
        "ids": dict(sorted(summary.ids.items(), key=lambda each: (-each[1], each[0]))),
        "oldest_start": summary.oldest_start,
    }


def _partitions(moment: Moment, rates: dict[int, list[Row]]) -> list[Row]:
    """Log partitions with their next offset, the one with the most records in the span first."""
    found = []
    for partition, offset in moment.batch.next_offsets.items():
        known = [row for row in rates.get(partition, []) if row["records_per_second"] is not None]
        seconds = sum((row["until"] - row["at"]).total_seconds() for row in known)
        records = sum(row["records_per_second"] * (row["until"] - row["at"]).total_seconds() for row in known)
        found.append(
            {
                "log_partition": partition,
                "next_offset": offset,
                "records": round(records) if known else None,
                "records_per_second": records / seconds if seconds else None,
            }
        )
    return sorted(found, key=lambda row: (-(row["records"] or 0), row["log_partition"]))
