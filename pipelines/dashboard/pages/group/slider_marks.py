"""Events of a group on the slider of time, over all of its history.

The slider leads to any time of the newest tables, so its marks are of them, also on a page of an earlier time.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.quantities import plural
from pipelines.dashboard.pages.parts.time_travel import SliderMark
from pipelines.dashboard.state.moment import Moment
from pipelines.query.histories import REMOVALS_SQL
from pipelines.runtime.errors import UsageError
from pipelines.tables.store import literal, timestamp_literal

#: Places of a slider: closer events of a kind are one mark.
_PLACES = 160
#: Kinds, the least serious first: the others are drawn over it.
_KINDS = ("rebalance", "removal", "rewind", "alert", "transaction", "loss", "stop")
#: Events that only the model of the page has, and their words. The slider has the time.
_OF_MODEL = {"transaction": "an open transaction", "loss": "unread records deleted", "stop": "last commit"}
#: Alerts that are marked, the newest ones.
_MOST_ALERTS = 100

_HISTORY = f"""
SELECT kind, min(at) AS at, count(*) AS events FROM (
  SELECT 'rebalance' AS kind, record_timestamp AS at FROM group_history
  WHERE group_id = {{group}} AND change = 'rebalance' AND record_timestamp BETWEEN {{first}} AND {{last}}
  UNION ALL
  SELECT CASE change WHEN 'rewind' THEN 'rewind' ELSE 'removal' END AS kind, record_timestamp AS at FROM offset_history
  WHERE group_id = {{group}} AND change IN ('rewind', {REMOVALS_SQL}) AND record_timestamp BETWEEN {{first}} AND {{last}}
) e
GROUP BY kind, floor((date_part('epoch', at) - {{first_seconds}}) / {{width}})
"""
_ALERTS = """
SELECT at, rule FROM alert_history WHERE group_id = {group} AND change = 'firing' AND at BETWEEN {first} AND {last}
ORDER BY at DESC LIMIT {most}
"""


def slider_marks(model: Mapping[str, Any], newest: Moment, first: datetime) -> list[SliderMark]:
    """Marks from `first` to the newest moment, in the order in which they are drawn."""
    last = newest.at
    seconds = (last - first).total_seconds()
    if seconds <= 0:
        return []
    values = {
        "group": literal(model["group_id"]),
        "first": timestamp_literal(first),
        "last": timestamp_literal(last),
        "first_seconds": repr(first.timestamp()),
        "width": repr(seconds / _PLACES),
        "most": literal(_MOST_ALERTS),
    }
    found = [(row["kind"], row["at"], _words(row["kind"], row["events"])) for row in _rows(newest, values)]
    found += [("alert", row["at"], f"alert {visible(row['rule'], 60)} fired") for row in _alerts(newest, values)]
    found += [
        (event["kind"], event["at"], _OF_MODEL[event["kind"]])
        for event in model["events"]
        if event["kind"] in _OF_MODEL and first <= event["at"] <= last
    ]
    return [
        SliderMark((at - first) / timedelta(seconds=seconds), at, kind, words)
        for kind, at, words in sorted(found, key=lambda each: (_KINDS.index(each[0]), each[1]))
    ]


def _rows(newest: Moment, values: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = newest.query(_HISTORY.format(**values)).to_pylist()
    return rows


def _alerts(newest: Moment, values: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    try:
        rows: list[Mapping[str, Any]] = newest.reopened()(_ALERTS.format(**values)).to_pylist()
    except UsageError:
        # `grouplake alerts` never ran with these tables
        return []
    return rows


def _words(kind: str, events: int) -> str:
    if kind == "rebalance":
        return plural(events, "rebalance")
    return f"{plural(events, 'offset')} {'went back' if kind == 'rewind' else 'removed'}"
