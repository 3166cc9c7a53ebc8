"""An alert: one instance of a rule, with its state and with what its receivers know of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from pipelines.alerts.states.labels import Labels, fingerprint


class State(Enum):
    """State of an alert. An inactive alert is kept only while a receiver has to be notified that it is resolved."""

    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"


class AlertKey(NamedTuple):
    """Identity of an alert: its rule, and the labels of the observed rows."""

    rule: str
    labels: Labels


@dataclass(frozen=True)
class Delivery:
    """The state of one alert at one receiver.

    - `is_open`: the receiver may have been notified that the alert fires, and not yet that it is resolved.
    - `is_confirmed`: the receiver has accepted a notification that the alert fires.
    - `sent_at_ms`: time of the last notification about the alert that the receiver accepted.
    - `failures`: failed attempts since then. `next_attempt_ms`: earliest time of the next one.
    """

    receiver: str
    is_open: bool = False
    is_confirmed: bool = False
    sent_at_ms: int | None = None
    failures: int = 0
    next_attempt_ms: int | None = None


@dataclass(frozen=True)
class Alert:
    """An alert. Labels and receivers are fixed when it starts to fire, so that a changed rule file cannot orphan a page.

    - `active_since_ms`: start of the known time in which the condition holds.
    - `clear_since_ms`: start of the time in which the condition is known not to hold.
    - `unknown_since_ms`: start of the time without a known value.
    - `reason`: why the alert was resolved.
    """

    key: AlertKey
    state: State
    labels: Labels
    annotations: Labels
    deliveries: tuple[Delivery, ...]
    active_since_ms: int
    value: float | str | None = None
    fired_at_ms: int | None = None
    resolved_at_ms: int | None = None
    clear_since_ms: int | None = None
    unknown_since_ms: int | None = None
    reason: str | None = None

    @property
    def fingerprint(self) -> str:
        """Deduplication key, as Alertmanager computes it."""
        return fingerprint(self.labels)

    @property
    def is_firing(self) -> bool:
        """Whether the alert fires."""
        return self.state is State.FIRING

    def delivery(self, receiver: str) -> Delivery | None:
        """The delivery to a receiver; None if the alert is not routed to it."""
        return next((each for each in self.deliveries if each.receiver == receiver), None)

    def with_delivery(self, changed: Delivery) -> "Alert":
        """The alert with one delivery replaced."""
        return replace(self, deliveries=tuple(changed if each.receiver == changed.receiver else each for each in self.deliveries))


def deliveries_to(receivers: Iterable[str]) -> tuple[Delivery, ...]:
    """Deliveries of an alert about which no receiver was notified."""
    return tuple(Delivery(receiver) for receiver in dict.fromkeys(receivers))
