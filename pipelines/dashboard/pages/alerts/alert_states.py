"""Alerts at a moment, from `alert_history`: pending, firing and resolved ones with their transitions, and deliveries."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipelines.dashboard.history.span import Span
from pipelines.dashboard.state.moment import Moment
from pipelines.runtime.errors import UsageError
from pipelines.tables.store import is_in, literal, timestamp_literal

Row = dict[str, Any]

#: Alerts, transitions and deliveries that a page reads.
MOST_ALERTS = 500
MOST_TRANSITIONS = 5_000
MOST_DELIVERIES = 100

_TRANSITIONS = ("pending", "firing", "resolved", "inactive")
_ACTIVE = ("firing", "pending")
#: Transitions of one evaluation in the order in which they happen.
_RANK = "CASE change WHEN 'pending' THEN 0 WHEN 'firing' THEN 1 ELSE 2 END"

_EXISTS = "SELECT 1 FROM alert_history LIMIT 1"
_NEWEST = f"""
SELECT h.fingerprint, h.group_id, h.change, h.at FROM (
  SELECT fingerprint, group_id, change, at, row_number() OVER (PARTITION BY fingerprint ORDER BY at DESC, {_RANK} DESC) AS age
  FROM alert_history WHERE fingerprint IS NOT NULL AND change IN {_TRANSITIONS} AND {{until}}
) h WHERE h.age = 1 AND (h.change IN {_ACTIVE} OR h.at >= {{start}}) ORDER BY h.at DESC LIMIT {{most}}
"""
_OF_ALERTS = f"""
SELECT * FROM alert_history
WHERE {{fingerprints}} AND change IN {_TRANSITIONS} AND {{until}} ORDER BY at DESC, {_RANK} DESC LIMIT {{most}}
"""
_TEXTS = """
SELECT fingerprint, group_id, annotations, deliveries, unknown_since FROM alerts WHERE state IN ('pending', 'firing')
"""
_DELIVERIES = """
SELECT at, change, receiver, labels, labels['group'] AS group_id, firing, resolved, attempt, reason FROM alert_history
WHERE receiver IS NOT NULL AND at >= {start} AND {until} ORDER BY at DESC LIMIT {most}
"""


class AlertQueries:
    """The tables of `grouplake alerts`. A past moment is made from the history, the newest one has the texts of `alerts` too."""

    def __init__(self, moment: Moment, span: Span) -> None:
        self._is_newest = moment.is_newest
        self._is_limited = moment.is_limited
        self._query = moment.reopened()
        # alerts are evaluated after the batch, so the newest page has all that there is
        until = "TRUE" if moment.is_newest else f"at <= {timestamp_literal(span.end)}"
        self._values = {"start": timestamp_literal(span.start), "until": until}

    def exist(self) -> bool:
        """False if `grouplake alerts` never ran with these tables."""
        try:
            self._query(_EXISTS)
        except UsageError:
            return False
        return True

    def alerts(self) -> list[Row]:
        """Alerts that are pending or firing, and those that ended in the span, the newest transition first."""
        newest = self._rows(_NEWEST, most=literal(MOST_ALERTS))
        if not newest:
            return []
        fingerprints = {row["fingerprint"] for row in newest}
        rows = self._rows(_OF_ALERTS, fingerprints=is_in("fingerprint", fingerprints), most=literal(MOST_TRANSITIONS))
        texts = {row["fingerprint"]: row for row in self._rows(_TEXTS)} if self._is_newest else {}
        return alert_states((row for row in rows if row["fingerprint"] in fingerprints), texts)

    def deliveries(self) -> list[Row]:
        """Attempts to deliver a notification in the span, the newest first.

        A viewer with a limited role sees those of its groups, without the reason, which may name the host of a receiver.
        """
        return [
            {**row, "labels": dict(row["labels"] or []), "reason": None if self._is_limited else row["reason"]}
            for row in self._rows(_DELIVERIES, most=literal(MOST_DELIVERIES))
        ]

    def _rows(self, sql: str, **values: str) -> list[Row]:
        rows: list[Row] = self._query(sql.format(**self._values, **values)).to_pylist()
        return rows


def alert_states(transitions: Iterable[Mapping[str, Any]], texts: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """One row per alert, from transitions with the newest first: its state, and the transitions since it was last inactive."""
    by_alert: dict[str, list[Mapping[str, Any]]] = {}
    for row in transitions:
        by_alert.setdefault(row["fingerprint"], []).append(row)
    found = []
    for fingerprint, rows in by_alert.items():
        newest, episode = rows[0], _episode(rows)
        # rows of earlier versions have no unit, nor has that of an alert whose rule was removed
        unit = next((row["unit"] for row in rows if row.get("unit")), None)
        text = texts.get(fingerprint, {})
        found.append(
            {
                "fingerprint": fingerprint,
                "rule": newest["rule"],
                "state": newest["change"],
                **{name: newest[name] for name in ("group_id", "topic", "partition", "value", "value_text", "reason")},
                "unit": unit,
                "labels": dict(newest["labels"] or []),
                "since": next((row["at"] for row in episode if row["change"] == newest["change"]), newest["at"]),
                "unknown_since": text.get("unknown_since"),
                "annotations": dict(text.get("annotations") or []),
                "receivers": list(text.get("deliveries") or []),
                "transitions": [
                    {**{name: row[name] for name in ("at", "change", "value", "value_text", "reason")}, "unit": unit}
                    for row in episode
                ],
            }
        )
    return found


def _episode(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The transitions of the newest time in which an alert was not inactive, the first one first."""
    found = [rows[0]]
    for row in rows[1:]:
        if row["change"] not in _ACTIVE:
            break
        found.append(row)
    return found[::-1]
