"""Alerts, their transitions and deliveries as rows of the tables `alerts` and `alert_history`."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa

from pipelines.alerts.states import Alert, AlertChange, AlertKey, Delivery, Labels, Notification, State, labels_of
from pipelines.runtime.timestamps import at_ms, to_ms


class DeliveryResult(NamedTuple):
    """The end of an attempt; `error` is None if the receiver accepted the notification."""

    notification: Notification
    error: str | None
    remark: str = ""


def alerts_table(alerts: Iterable[Alert], schema: pa.Schema, now_ms: int) -> pa.Table:
    """Rows of `alerts`."""
    return pa.Table.from_pylist([_row(alert, now_ms) for alert in alerts], schema)


def alerts_of(rows: pa.Table) -> dict[AlertKey, Alert]:
    """The alerts in rows of `alerts`."""
    alerts = (_alert(row) for row in rows.to_pylist())
    return {alert.key: alert for alert in alerts}


def change_row(change: AlertChange, unit: str | None, now_ms: int) -> dict[str, Any]:
    """A row of `alert_history` for a transition; `unit` is that of the value."""
    alert = change.alert
    return {
        "at": at_ms(now_ms),
        "change": change.change,
        "rule": alert.key.rule,
        "fingerprint": alert.fingerprint,
        **_subject(alert.key.labels),
        **_value(alert.value),
        "labels": alert.labels,
        "summary": dict(alert.annotations).get("summary"),
        "unit": unit,
        "reason": alert.reason if change.change in ("resolved", "given_up") else None,
    }


def delivery_row(result: DeliveryResult, now_ms: int) -> dict[str, Any]:
    """A row of `alert_history` for a delivery."""
    notification = result.notification
    return {
        "at": at_ms(now_ms),
        "change": "failed" if result.error is not None else "delivered",
        "labels": notification.group_labels,
        "reason": result.error or result.remark or None,
        "receiver": notification.receiver,
        "firing": len(notification.firing),
        "resolved": len(notification.resolved),
        "attempt": notification.attempt,
    }


def _row(alert: Alert, now_ms: int) -> dict[str, Any]:
    return {
        "fingerprint": alert.fingerprint,
        "rule": alert.key.rule,
        "state": alert.state.value,
        **_subject(alert.key.labels),
        **_value(alert.value),
        "active_since": at_ms(alert.active_since_ms),
        "fired_at": _time(alert.fired_at_ms),
        "resolved_at": _time(alert.resolved_at_ms),
        "clear_since": _time(alert.clear_since_ms),
        "unknown_since": _time(alert.unknown_since_ms),
        "reason": alert.reason,
        "instance": alert.key.labels,
        "labels": alert.labels,
        "annotations": alert.annotations,
        "deliveries": [
            {
                "receiver": delivery.receiver,
                "is_open": delivery.is_open,
                "is_confirmed": delivery.is_confirmed,
                "sent_at": _time(delivery.sent_at_ms),
                "failures": delivery.failures,
                "next_attempt_at": _time(delivery.next_attempt_ms),
            }
            for delivery in alert.deliveries
        ],
        "evaluated_at": at_ms(now_ms),
    }


def _alert(row: Mapping[str, Any]) -> Alert:
    return Alert(
        key=AlertKey(row["rule"], labels_of(dict(row["instance"]))),
        state=State(row["state"]),
        labels=labels_of(dict(row["labels"])),
        annotations=tuple(row["annotations"]),
        deliveries=tuple(
            Delivery(
                receiver=each["receiver"],
                is_open=each["is_open"],
                is_confirmed=each["is_confirmed"],
                sent_at_ms=_ms(each["sent_at"]),
                failures=each["failures"],
                next_attempt_ms=_ms(each["next_attempt_at"]),
            )
            for each in row["deliveries"]
        ),
        active_since_ms=to_ms(row["active_since"]),
        value=row["value"] if row["value_text"] is None else row["value_text"],
        fired_at_ms=_ms(row["fired_at"]),
        resolved_at_ms=_ms(row["resolved_at"]),
        clear_since_ms=_ms(row["clear_since"]),
        unknown_since_ms=_ms(row["unknown_since"]),
        reason=row["reason"],
    )


def _subject(labels: Labels) -> dict[str, Any]:
    """The columns for group, topic and partition."""
    named = dict(labels)
    partition = named.get("partition", "")
    return {
        "group_id": named.get("group"),
        "topic": named.get("topic"),
        "partition": int(partition) if partition.isdecimal() and len(partition) < 10 else None,
    }


def _value(value: float | str | None) -> dict[str, Any]:
    return {"value": None, "value_text": value} if isinstance(value, str) else {"value": value, "value_text": None}


def _time(ms: int | None) -> datetime | None:
    return None if ms is None else at_ms(ms)


def _ms(at: datetime | None) -> int | None:
    return None if at is None else to_ms(at)
