"""An Alertmanager: POST /api/v2/alerts, as Prometheus does. It groups, silences and routes itself."""

from dataclasses import dataclass
from typing import Any

from pipelines.alerts.receivers.http import HttpReceiver, HttpTarget
from pipelines.alerts.receivers.message import annotations_of, rfc3339
from pipelines.alerts.receivers.receiver import Context
from pipelines.alerts.section import Section
from pipelines.alerts.states import Alert, Grouping, Notification

#: Alertmanager regards an alert as resolved when it was not sent again within this number of intervals, as with Prometheus.
_INTERVALS = 4

#: Alerts per request.
_ALERTS = 1_000


@dataclass(frozen=True)
class Alertmanager(HttpReceiver):
    """All alerts in one request, sent again at `repeat_interval` while they fire."""

    kind: str = "alertmanager"

    @classmethod
    def of(cls, name: str, grouping: Grouping, timeout_seconds: float, section: Section) -> "Alertmanager":
        """Read the keys of an Alertmanager."""
        return cls(name, grouping, timeout_seconds, HttpTarget.of(section, "/api/v2/alerts"))

    def send(self, notification: Notification, context: Context) -> str:
        """POST the alerts."""
        alerts = [self._posted(alert, context) for alert in (*notification.firing, *notification.resolved)]
        for start in range(0, len(alerts), _ALERTS):
            self.endpoint.post(alerts[start : start + _ALERTS], self.timeout_seconds)
        return ""

    def _posted(self, alert: Alert, context: Context) -> dict[str, Any]:
        ends = context.now_ms + _INTERVALS * self.grouping.repeat_interval_ms if alert.is_firing else alert.resolved_at_ms or 0
        return {
            "labels": dict(alert.labels),
            "annotations": annotations_of(alert),
            "startsAt": rfc3339(alert.fired_at_ms or alert.active_since_ms),
            "endsAt": rfc3339(ends),
            "generatorURL": context.external_url,
        }
