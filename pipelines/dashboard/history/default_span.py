"""The span of a page whose address has none: six hours, or a shorter one that has all data there is in them."""

from datetime import datetime
from typing import Any

from pipelines.dashboard.history.span import OFFERED, SHORTER, Span, span_until
from pipelines.dashboard.state.moment import Moment
from pipelines.tables.store import literal, timestamp_literal

#: The time of the first batch, and the number of batches; one statement for all pages, so that its result is kept.
FIRST_BATCH = "SELECT min(finished_at) AS at, count(*) AS batches FROM batches"
# the log may have records of a time before the first batch, samples are never older than it
_OLDEST = """
SELECT min(at) AS at FROM (
  SELECT sampled_at AS at FROM lag_history WHERE group_id = {group}
  UNION ALL
  SELECT record_timestamp AS at FROM membership_history WHERE group_id = {group}
  UNION ALL
  SELECT record_timestamp AS at FROM offset_history WHERE group_id = {group}
) o WHERE at BETWEEN {start} AND {end}
"""


def span_of_samples(moment: Moment, text: str | None) -> Span:
    """The span of a page that shows what the job sampled. Raises InvalidRequest for an invalid `text`."""
    span = span_until(moment.at, text)
    return span if text else _fitting(span, _first_batch(moment))


def span_of_group(moment: Moment, group: str, text: str | None) -> Span:
    """The span of the page of a group. Raises InvalidRequest for an invalid `text`."""
    span = span_until(moment.at, text)
    if text or _first_batch(moment) <= span.start:
        return span
    values = {"group": literal(group), "start": timestamp_literal(span.start), "end": timestamp_literal(span.end)}
    oldest: datetime | None = _value(moment, _OLDEST.format(**values))
    return span if oldest is None else _fitting(span, oldest)


def offered_spans(text: str) -> tuple[str, ...]:
    """The spans that a page offers, with its own one if that is a shorter default."""
    return (text, *OFFERED) if text in SHORTER and text not in OFFERED else OFFERED


def _fitting(span: Span, oldest: datetime) -> Span:
    shorter = (span_until(span.end, text) for text in SHORTER)
    return next((each for each in shorter if each.start <= oldest), span)


def _first_batch(moment: Moment) -> datetime:
    at: datetime = _value(moment, FIRST_BATCH)
    return at


def _value(moment: Moment, sql: str) -> Any:
    return moment.query(sql).to_pylist()[0]["at"]
