"""Webhooks in the shape of Alertmanager's: version 4."""

from dataclasses import dataclass

from pipelines.alerts.receivers.http import HttpReceiver, HttpTarget
from pipelines.alerts.receivers.message import webhook_message
from pipelines.alerts.receivers.receiver import Context
from pipelines.alerts.section import Section
from pipelines.alerts.states import Grouping, Notification


@dataclass(frozen=True)
class Webhook(HttpReceiver):
    """POST of the JSON document that Alertmanager sends to webhooks."""

    max_alerts: int
    kind: str = "webhook"

    @classmethod
    def of(cls, name: str, grouping: Grouping, timeout_seconds: float, section: Section) -> "Webhook":
        """Read the keys of a webhook."""
        return cls(name, grouping, timeout_seconds, HttpTarget.of(section), section.number("max_alerts", 0, 0, 1_000_000))

    def send(self, notification: Notification, context: Context) -> str:
        """POST the notification."""
        self.endpoint.post(webhook_message(notification, context, self.max_alerts), self.timeout_seconds)
        return ""
