"""Values that only the HTML of the page of the offsets topic needs: its charts with their summaries."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from pipelines.dashboard.formatting.quantities import count, duration, pace, plural
from pipelines.dashboard.history.default_span import offered_spans
from pipelines.dashboard.pages.offsets_topic.log_history import LONGEST_COUNT, MAINTENANCE_SPAN
from pipelines.dashboard.pages.offsets_topic.phase_bars import KINDS, kind_ms, phase_chart
from pipelines.dashboard.pages.offsets_topic.small_multiples import small_multiples
from pipelines.dashboard.state.moment import Moment


def offsets_topic_view(model: Mapping[str, Any], _: Moment) -> Mapping[str, Any]:
    """Names for the template offsets_topic.html."""
    span, phases = model["span"], phase_chart(model["batches"])
    series = {
        each["log_partition"]: [
            *((row["at"], row["records_per_second"]) for row in each["points"]),
            *((row["until"], None) for row in each["points"][-1:]),
        ]
        for each in model["rates"]
    }
    return {
        "spans": offered_spans(model["span"]["text"]),
        "multiples": small_multiples(series, span["start"], span["end"]),
        "rates_summary": rates_summary(model),
        "phases": phases,
        "phases_summary": phases_summary(model["batches"]),
        "median_seconds": median_ms(model["batches"]) / 1000 if model["batches"] else None,
        "kinds": [(name, label) for name, label, _ in KINDS],
        "drawn_kinds": {bar.kind for row in phases.rows for bar in row.bars},
        "kind_ms": kind_ms,
        "longest_count": LONGEST_COUNT.total_seconds(),
        "maintenance_seconds": MAINTENANCE_SPAN.total_seconds(),
        "records": sum(row["records"] or 0 for row in model["partitions"]),
    }


def rates_summary(model: Mapping[str, Any]) -> str:
    """One sentence with the numbers of the charts of the log partitions."""
    partitions = model["partitions"]
    known = [row for row in partitions if row["records"] is not None]
    if not known:
        return f"Last {model['span']['text']}: fewer than two batches, so the rate is unknown."
    busiest, records = known[0], sum(row["records"] for row in known)
    text = f"Last {model['span']['text']}: {plural(records, 'record')} read from {plural(len(partitions), 'log partition')}"
    if records:
        text += (
            f", most of them from partition {busiest['log_partition']}: {count(busiest['records'])}, "
            f"{pace(busiest['records_per_second'])}"
        )
    return f"{text}."


def phases_summary(batches: Sequence[Mapping[str, Any]]) -> str:
    """One sentence with the numbers of the chart of the batches."""
    if not batches:
        return "No batches."
    sums = [(sum(kind_ms(batch["phase_ms"]).values()), batch["batch_id"]) for batch in batches]
    longest, batch_id = max(sums)
    return (
        f"{plural(len(batches), 'batch', 'batches')}: the median takes {duration(median_ms(batches) / 1000)}, "
        f"the longest, batch {batch_id}, {duration(longest / 1000)}."
    )


def median_ms(batches: Sequence[Mapping[str, Any]]) -> float:
    """Median of the time that the phases of a batch take."""
    return float(median(sum(batch["phase_ms"].values()) for batch in batches))
