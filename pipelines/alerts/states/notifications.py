"""Notifications of alerts: groups, waiting times, repetitions, retries. Time is an argument.

The state is in the deliveries of the alerts, so a restart continues where the last process ended. At most one notification per
receiver and group is due, made from the alerts of now: an outage of a receiver makes no queue.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from pipelines.alerts.states.alert import Alert, AlertKey, Delivery, State
from pipelines.alerts.states.labels import Labels

Alerts = Mapping[AlertKey, Alert]

#: Pause after the first failed attempt, doubled with each further one up to the maximum.
_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS = 5_000, 300_000

#: Time after which a resolve that its receiver never accepted is dropped.
GIVE_UP_MS = 5 * 86_400_000


@dataclass(frozen=True)
class Grouping:
    """Groups of a receiver and their times, with the meaning that they have in Alertmanager."""

    group_by: tuple[str, ...] = ()
    group_wait_ms: int = 30_000
    group_interval_ms: int = 300_000
    repeat_interval_ms: int = 14_400_000
    sends_resolved: bool = True

    def labels_of(self, alert: Alert) -> Labels:
        """Labels that the alerts of a group have in common."""
        return tuple((name, value) for name, value in alert.labels if name in self.group_by)


@dataclass(frozen=True)
class Notification:
    """Alerts of one group for one receiver: all that fire, and those that were resolved since the last notification."""

    receiver: str
    group_labels: Labels
    firing: tuple[Alert, ...]
    resolved: tuple[Alert, ...]
    attempt: int

    @property
    def keys(self) -> tuple[AlertKey, ...]:
        """The alerts in the notification."""
        return tuple(alert.key for alert in (*self.firing, *self.resolved))


def pause_ms(failures: int) -> int:
    """Pause after that many failed attempts in sequence."""
    return min(_FIRST_PAUSE_MS << min(failures - 1, 10), _LONGEST_PAUSE_MS)


def due_notifications(alerts: Alerts, groupings: Mapping[str, Grouping], now_ms: int) -> list[Notification]:
    """The notifications to send now, in the order of receivers and groups."""
    groups: dict[tuple[str, Labels], list[Alert]] = {}
    for alert in alerts.values():
        for delivery in alert.deliveries:
            grouping = groupings.get(delivery.receiver)
            if grouping is not None and (alert.is_firing or _is_owed(alert, delivery, grouping)):
                groups.setdefault((delivery.receiver, grouping.labels_of(alert)), []).append(alert)
    due = []
    for (receiver, labels), members in sorted(groups.items(), key=lambda group: group[0]):
        if now_ms >= _due_at(receiver, groupings[receiver], members):
            ordered = sorted(members, key=lambda alert: (alert.fired_at_ms or 0, alert.labels))
            firing = tuple(alert for alert in ordered if alert.is_firing)
            resolved = tuple(alert for alert in ordered if not alert.is_firing)
            attempt = 1 + max(_delivery(alert, receiver).failures for alert in members)
            due.append(Notification(receiver, labels, firing, resolved, attempt))
    return due


def with_attempt(alerts: Alerts, notification: Notification) -> dict[AlertKey, Alert]:
    """The alerts before the notification is sent: from now on the receiver may know them, whatever happens to the response."""
    return _changed(alerts, notification, lambda alert, delivery: replace(delivery, is_open=delivery.is_open or alert.is_firing))


def with_success(alerts: Alerts, notification: Notification, now_ms: int) -> dict[AlertKey, Alert]:
    """The alerts after the receiver accepted the notification."""
    firing = {alert.key for alert in notification.firing}

    def accepted(alert: Alert, delivery: Delivery) -> Delivery:
        reported = alert.key in firing
        return Delivery(delivery.receiver, is_open=reported, is_confirmed=reported, sent_at_ms=now_ms)

    return _changed(alerts, notification, accepted)


def with_failure(alerts: Alerts, notification: Notification, now_ms: int) -> dict[AlertKey, Alert]:
    """The alerts after a failed attempt."""
    next_attempt_ms = now_ms + pause_ms(notification.attempt)
    return _changed(
        alerts,
        notification,
        lambda _, delivery: replace(delivery, failures=notification.attempt, next_attempt_ms=next_attempt_ms),
    )


def settled(alerts: Alerts, groupings: Mapping[str, Grouping], now_ms: int) -> tuple[dict[AlertKey, Alert], list[Alert]]:
    """The alerts that still matter, and those dropped although a receiver never accepted their resolve."""
    kept: dict[AlertKey, Alert] = {}
    given_up = []
    for key, alert in alerts.items():
        owed = any(
            (grouping := groupings.get(delivery.receiver)) is not None and _is_owed(alert, delivery, grouping)
            for delivery in alert.deliveries
        )
        if alert.state is State.INACTIVE and owed and now_ms - (alert.resolved_at_ms or 0) >= GIVE_UP_MS:
            given_up.append(alert)
        elif alert.state is not State.INACTIVE or owed:
            kept[key] = alert
    return kept, given_up


def _due_at(receiver: str, grouping: Grouping, members: Iterable[Alert]) -> int:
    deliveries = [(alert, _delivery(alert, receiver)) for alert in members]
    sent = max((delivery.sent_at_ms for _, delivery in deliveries if delivery.sent_at_ms is not None), default=None)
    if sent is None:
        due = min(alert.fired_at_ms or 0 for alert, _ in deliveries) + grouping.group_wait_ms
    elif any(not alert.is_firing or not delivery.is_confirmed for alert, delivery in deliveries):
        due = sent + grouping.group_interval_ms
    else:
        due = sent + grouping.repeat_interval_ms
    return max(due, *(delivery.next_attempt_ms or 0 for _, delivery in deliveries))


def _is_owed(alert: Alert, delivery: Delivery, grouping: Grouping) -> bool:
    return grouping.sends_resolved and not alert.is_firing and delivery.is_open


def _delivery(alert: Alert, receiver: str) -> Delivery:
    delivery = alert.delivery(receiver)
    assert delivery is not None, "a group has only alerts that are routed to its receiver"
    return delivery


def _changed(alerts: Alerts, notification: Notification, change: Callable[[Alert, Delivery], Delivery]) -> dict[AlertKey, Alert]:
    following = dict(alerts)
    for key in notification.keys:
        if key in following:
            alert = following[key]
            following[key] = alert.with_delivery(change(alert, _delivery(alert, notification.receiver)))
    return following
