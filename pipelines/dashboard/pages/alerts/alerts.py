"""The page of alerts: firing, pending and resolved ones with the values of their transitions, and the deliveries."""

from collections.abc import Iterable
from typing import Any

from pipelines.dashboard.formatting.alerts import STATES
from pipelines.dashboard.history.span import OFFERED, span_until
from pipelines.dashboard.pages.alerts.alert_states import AlertQueries
from pipelines.dashboard.pages.parts.page import Query
from pipelines.dashboard.state.moment import Moment

Row = dict[str, Any]

_SEVERITIES = ("critical", "page", "error", "warning", "info")
#: Deliveries that the page lists; its JSON has more.
_SHOWN_DELIVERIES = 20
#: Alerts that ended belong to the span; by default a day.
_DEFAULT_SPAN = "24h"


def alerts_page(moment: Moment, query: Query) -> Row:
    """The model of the page. `exist` is False if `grouplake alerts` never ran. Raises UsageError for an invalid span."""
    span = span_until(moment.at, query.get("span") or _DEFAULT_SPAN)
    queries = AlertQueries(moment, span)
    exist = queries.exist()
    alerts = sorted(queries.alerts(), key=_order) if exist else []
    return {
        "exist": exist,
        "span": {"start": span.start, "end": span.end, "text": span.text},
        "counts": {state: sum(alert["state"] == state for alert in alerts) for state in STATES},
        "alerts": alerts,
        "deliveries": queries.deliveries() if exist else [],
    }


def alerts_view(model: Row, _: Moment) -> Row:
    """The alerts by state, for the sections of the page; those of one subject stand together."""
    return {
        "spans": OFFERED,
        "shown_deliveries": _SHOWN_DELIVERIES,
        "current": _by_subject(alert for alert in model["alerts"] if alert["state"] in ("firing", "pending")),
        "ended": _by_subject(alert for alert in model["alerts"] if alert["state"] not in ("firing", "pending")),
        "failed": [row for row in model["deliveries"] if row["change"] != "delivered"],
    }


def _by_subject(alerts: Iterable[Row]) -> list[list[Row]]:
    """The alerts of each group, of each topic without a group, and all others, in the order of the first of each."""
    found: dict[tuple[str | None, str | None], list[Row]] = {}
    for alert in alerts:
        group = alert["group_id"]
        found.setdefault((group, alert["topic"] if group is None else None), []).append(alert)
    return list(found.values())


def _order(alert: Row) -> tuple[Any, ...]:
    """Firing before pending, by severity, the newest first."""
    severity = alert["labels"].get("severity", "")
    rank = _SEVERITIES.index(severity) if severity in _SEVERITIES else len(_SEVERITIES)
    return list(STATES).index(alert["state"]), rank, -alert["since"].timestamp(), alert["rule"], alert["fingerprint"]
