"""Events of a group beside its membership, offsets and transactions: deleted records, alerts."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from pipelines.dashboard.formatting.alerts import alert_reason, alert_value
from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.quantities import plural
from pipelines.dashboard.history.span import Span
from pipelines.dashboard.state.moment import Moment
from pipelines.runtime.errors import UsageError
from pipelines.tables.store import literal, timestamp_literal

Row = Mapping[str, Any]
Event = dict[str, Any]

#: Losses that were seen this long before the span are no events of it.
_BEFORE = timedelta(minutes=5)
#: Transitions of alerts that a page reads.
_MOST_ALERTS = 500

#: Samples of the topics in which records were lost, with all samples between them.
_TOPICS = """
SELECT topic, sampled_at AS at, messages_lost FROM lag_history
WHERE group_id = {group} AND sampled_at BETWEEN {before} AND {end} AND topic IN (
  SELECT topic FROM lag_history WHERE group_id = {group} AND sampled_at BETWEEN {before} AND {end}
    AND messages_lost > 0
)
ORDER BY topic, sampled_at
"""
_ALERTS = """
SELECT * FROM alert_history
WHERE group_id = {group} AND change IN ('firing', 'resolved') AND at >= {start} AND {until} ORDER BY at DESC LIMIT {most}
"""


def losses(moment: Moment, group: str, span: Span) -> list[Event]:
    """Deletions of unread records that were seen in the span."""
    values = {
        "group": literal(group),
        "before": timestamp_literal(span.start - _BEFORE),
        "end": timestamp_literal(span.end),
    }
    events = loss_events(moment.query(_TOPICS.format(**values)).to_pylist())
    return [event for event in events if span.start <= event["at"] <= span.end]


def alerts(moment: Moment, group: str, span: Span) -> list[Event]:
    """Alerts of the group that fired or were resolved in the span; none if `grouplake alerts` never ran with these tables.

    Alerts are evaluated after the batch, so those on the page of the newest batch may be after its end.
    """
    values = {
        "group": literal(group),
        "start": timestamp_literal(span.start),
        "until": "TRUE" if moment.is_newest else f"at <= {timestamp_literal(span.end)}",
        "most": literal(_MOST_ALERTS),
    }
    try:
        transitions = moment.reopened()(_ALERTS.format(**values)).to_pylist()
    except UsageError:
        return []
    return [{"at": row["at"], "kind": "alert", "words": _alert_words(row)} for row in transitions]


def loss_events(samples: Iterable[Row]) -> list[Event]:
    """Deletions of unread records, one event for each time until the group is in the log again."""
    found = []
    for topic, run, _ in _runs(samples, "messages_lost"):
        lost = max(row["messages_lost"] for row in run)
        words = f"Retention deleted {plural(lost, 'record')} of {visible(topic)} before the group read them"
        found.append({"at": run[0]["at"], "kind": "loss", "words": words})
    return found


def _runs(samples: Iterable[Row], name: str) -> Iterator[tuple[str, list[Row], datetime | None]]:
    """Successive samples of a topic with a value above 0, and the time of the next sample. Unknown values continue a run."""
    for topic, rows in groupby(samples, key=lambda row: row["topic"]):
        run: list[Row] = []
        for row in rows:
            if row[name]:
                run.append(row)
            elif run and row[name] is not None:
                yield topic, run, row["at"]
                run = []
        if run:
            yield topic, run, None


def _alert_words(row: Row) -> str:
    name = visible(row["rule"], 60)
    if row["change"] == "resolved":
        return f"Alert {name} was resolved: {alert_reason(row['reason']) or 'the condition no longer holds'}"
    # rows of earlier versions have no summary
    summary = row.get("summary")
    text = visible(summary, 300).removesuffix(".") if summary else f"value {alert_value(row)}"
    return f"Alert {name} fired: {text}"
