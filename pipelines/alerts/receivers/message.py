"""Notifications as JSON in the shape of Alertmanager's webhook (version 4), and as text."""

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.alerts.receivers.receiver import Context
from pipelines.alerts.states import ALERT_NAME, Alert, Labels, Notification, group_key
from pipelines.runtime.timestamps import at_ms

#: End of an alert that fires: Go's zero time.
_NO_END = "0001-01-01T00:00:00Z"


def rfc3339(ms: int) -> str:
    """A time as Alertmanager writes it."""
    return at_ms(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def webhook_message(notification: Notification, context: Context, max_alerts: int = 0) -> dict[str, Any]:
    """The body that Alertmanager sends to webhooks; `max_alerts` limits the number of alerts in it (0: no limit)."""
    alerts = [*notification.firing, *notification.resolved]
    shown = alerts[:max_alerts] if max_alerts else alerts
    return {
        "version": "4",
        "groupKey": group_key(notification.group_labels),
        "truncatedAlerts": len(alerts) - len(shown),
        "status": "firing" if notification.firing else "resolved",
        "receiver": notification.receiver,
        "groupLabels": dict(notification.group_labels),
        "commonLabels": _common(alert.labels for alert in alerts),
        "commonAnnotations": _common(alert.annotations for alert in alerts),
        "externalURL": context.external_url,
        "alerts": [_webhook_alert(alert, context) for alert in shown],
    }


def _webhook_alert(alert: Alert, context: Context) -> dict[str, Any]:
    return {
        "status": "firing" if alert.is_firing else "resolved",
        "labels": dict(alert.labels),
        "annotations": annotations_of(alert),
        "startsAt": rfc3339(alert.fired_at_ms or alert.active_since_ms),
        "endsAt": _NO_END if alert.is_firing else rfc3339(alert.resolved_at_ms or 0),
        "generatorURL": context.external_url,
        "fingerprint": alert.fingerprint,
    }


def annotations_of(alert: Alert) -> dict[str, str]:
    """The annotations, with the reason of an end that is not an all-clear."""
    reason = {} if alert.is_firing or alert.reason in (None, "cleared") else {"resolved_reason": str(alert.reason)}
    unknown = {"unknown_since": rfc3339(alert.unknown_since_ms)} if alert.unknown_since_ms is not None else {}
    return {**dict(alert.annotations), **reason, **unknown}


def _common(each: Iterable[Labels]) -> dict[str, str]:
    """The pairs that all have."""
    sets = [set(pairs) for pairs in each]
    return dict(sorted(set.intersection(*sets))) if sets else {}


def subject(notification: Notification) -> str:
    """One line, such as `[FIRING:2] GroupStopped group=billing`."""
    status = f"FIRING:{len(notification.firing)}" if notification.firing else f"RESOLVED:{len(notification.resolved)}"
    alerts = (*notification.firing, *notification.resolved)
    common = _common(alert.labels for alert in alerts)
    name = common.pop(ALERT_NAME, "alerts")
    others = " ".join(f"{label}={value}" for label, value in common.items())
    return f"[{status}] {name} {others}".strip()


def text_body(notification: Notification, context: Context, max_alerts: int = 0) -> str:
    """The alerts as text, with labels and annotations."""
    lines: list[str] = []
    left = max_alerts or len(notification.keys)
    for title, alerts in (("Firing", notification.firing), ("Resolved", notification.resolved)):
        for alert in alerts[:left]:
            labels: Mapping[str, str] = dict(alert.labels)
            lines += [f"{title}: {labels[ALERT_NAME]}"]
            lines += [f"  {name}: {_one_line(value)}" for name, value in annotations_of(alert).items()]
            lines += [f"  since: {rfc3339(alert.fired_at_ms or alert.active_since_ms)}"]
            if not alert.is_firing:
                lines += [f"  until: {rfc3339(alert.resolved_at_ms or 0)}"]
            lines += [f"  {name} = {_one_line(value)}" for name, value in alert.labels if name != ALERT_NAME]
            lines += [""]
        left -= min(left, len(alerts))
    hidden = len(notification.keys) - min(len(notification.keys), max_alerts or len(notification.keys))
    if hidden:
        lines += [f"{hidden} more alerts"]
    if context.external_url:
        lines += [context.external_url]
    return "\n".join(lines).rstrip() + "\n"


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
