"""State machine of alerts: inactive → pending → firing → inactive. Time is an argument.

A row of TRANSITIONS applies if the alert is in its state, the condition was seen as one of `seen`, and the time since the timer
is at least the limit of the rule. Anything else keeps the state. So an unknown value lets no alert fire, and resolves none before
`unknown_for`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from pipelines.alerts.states.alert import Alert, AlertKey, State, deliveries_to
from pipelines.alerts.states.labels import Labels
from pipelines.alerts.states.rule import Observation, Rule, RuleResult, Seen


class Transition(NamedTuple):
    """A row of the table; `timer` is a field of Alert and `limit` one of Rule, both empty for an immediate change."""

    state: State
    seen: frozenset[Seen]
    timer: str
    limit: str
    next_state: State
    change: str


_CLEAR = frozenset({Seen.FALSE, Seen.ABSENT})
_TRUE = frozenset({Seen.TRUE})
_UNKNOWN = frozenset({Seen.UNKNOWN})

TRANSITIONS = (
    Transition(State.INACTIVE, _TRUE, "", "", State.PENDING, "pending"),
    Transition(State.PENDING, _TRUE, "active_since_ms", "for_ms", State.FIRING, "firing"),
    Transition(State.PENDING, _CLEAR, "", "", State.INACTIVE, "inactive"),
    Transition(State.PENDING, _UNKNOWN, "unknown_since_ms", "unknown_for_ms", State.INACTIVE, "inactive"),
    Transition(State.FIRING, _CLEAR, "clear_since_ms", "keep_firing_for_ms", State.INACTIVE, "resolved"),
    Transition(State.FIRING, _UNKNOWN, "unknown_since_ms", "unknown_for_ms", State.INACTIVE, "resolved"),
)

#: Why an alert became inactive.
REASONS = {Seen.FALSE: "cleared", Seen.ABSENT: "absent", Seen.UNKNOWN: "unknown"}
RULE_REMOVED = "rule_removed"

#: Labels of an alert → labels that its owner adds, and names of its receivers.
Route = Callable[[Rule, Labels], tuple[Labels, tuple[str, ...]]]


class AlertChange(NamedTuple):
    """A transition of an alert, with the alert after it."""

    change: str
    alert: Alert


@dataclass(frozen=True)
class AdvancedAlerts:
    """The alerts after an evaluation, and the transitions that it caused."""

    alerts: Mapping[AlertKey, Alert]
    changes: tuple[AlertChange, ...]


def step(alerts: Mapping[AlertKey, Alert], results: Iterable[RuleResult], route: Route, now_ms: int) -> AdvancedAlerts:
    """Apply one evaluation of all rules. Alerts of rules that no longer exist are resolved."""
    following: dict[AlertKey, Alert] = {}
    changes: list[AlertChange] = []
    rules: set[str] = set()
    of_rule: dict[str, list[Alert]] = {}
    for alert in alerts.values():
        of_rule.setdefault(alert.key.rule, []).append(alert)
    for result in results:
        rules.add(result.rule.name)
        earlier = {alert.key.labels: alert for alert in of_rule.get(result.rule.name, ())}
        observed = result.observations
        for labels in dict.fromkeys((*earlier, *(observed or ()))):
            observation = None if observed is None else observed.get(labels)
            seen = Seen.UNKNOWN if observed is None else Seen.ABSENT if observation is None else observation.seen
            before = earlier.get(labels)
            if before is None:
                if observation is None or seen is not Seen.TRUE:
                    continue
                before = Alert(AlertKey(result.rule.name, labels), State.INACTIVE, (), (), (), now_ms)
            after = _advanced(_noted(before, result.rule, observation, seen, route, now_ms), result.rule, seen, now_ms, changes)
            following[after.key] = after
    for name in of_rule.keys() - rules:
        for alert in of_rule[name]:
            following[alert.key] = _removed(alert, now_ms, changes)
    return AdvancedAlerts(following, tuple(changes))


def _noted(alert: Alert, rule: Rule, observation: Observation | None, seen: Seen, route: Route, now_ms: int) -> Alert:
    """The alert with its value and timers after an observation."""
    match seen:
        case Seen.UNKNOWN:
            return replace(alert, unknown_since_ms=now_ms if alert.unknown_since_ms is None else alert.unknown_since_ms)
        case Seen.FALSE | Seen.ABSENT:
            since = now_ms if alert.clear_since_ms is None else alert.clear_since_ms
            value = alert.value if observation is None else observation.value
            return replace(alert, value=value, clear_since_ms=since, unknown_since_ms=None)
    assert observation is not None, "only an observation can be true"
    active_since = alert.active_since_ms
    if alert.state is State.INACTIVE:
        active_since = now_ms
    elif alert.state is State.PENDING and alert.unknown_since_ms is not None:
        # time without a known value does not count
        active_since += max(0, now_ms - alert.unknown_since_ms)
    alert = replace(alert, value=observation.value, active_since_ms=active_since, clear_since_ms=None, unknown_since_ms=None)
    if not alert.is_firing:
        alert = _routed(alert, rule, route)
    values = {**observation.details, **dict(alert.labels)}
    texts = ((name, template.filled(values)) for name, template in rule.annotations)
    return replace(alert, annotations=tuple((name, text) for name, text in texts if text))


def _routed(alert: Alert, rule: Rule, route: Route) -> Alert:
    """The alert with labels and receivers. Receivers that still have to be notified of a resolve remain."""
    added, receivers = route(rule, rule.labels_of(alert.key.labels))
    open_deliveries = tuple(delivery for delivery in alert.deliveries if delivery.is_open)
    if open_deliveries:
        known = {delivery.receiver for delivery in open_deliveries}
        others = (receiver for receiver in receivers if receiver not in known)
        # the labels under which the receivers were notified
        return replace(alert, deliveries=open_deliveries + deliveries_to(others))
    return replace(alert, labels=rule.labels_of(alert.key.labels, added), deliveries=deliveries_to(receivers))


def _advanced(alert: Alert, rule: Rule, seen: Seen, now_ms: int, changes: list[AlertChange]) -> Alert:
    """The alert after all transitions that are due; a rule without `for` takes two in one evaluation."""
    while (row := _row(alert, rule, seen, now_ms)) is not None:
        alert = replace(alert, state=row.next_state)
        if row.next_state is State.FIRING:
            alert = replace(alert, fired_at_ms=now_ms, resolved_at_ms=None, reason=None)
        elif row.change == "resolved":
            alert = replace(alert, resolved_at_ms=now_ms, reason=REASONS[seen])
        changes.append(AlertChange(row.change, alert))
    return alert


def _row(alert: Alert, rule: Rule, seen: Seen, now_ms: int) -> Transition | None:
    for row in TRANSITIONS:
        if row.state is alert.state and seen in row.seen:
            if not row.timer or now_ms - getattr(alert, row.timer) >= getattr(rule, row.limit):
                return row
            return None
    return None


def _removed(alert: Alert, now_ms: int, changes: list[AlertChange]) -> Alert:
    """The alert of a rule that is no longer in the file."""
    if alert.state is State.INACTIVE:
        return alert
    change = "resolved" if alert.is_firing else "inactive"
    after = replace(alert, state=State.INACTIVE)
    if alert.is_firing:
        after = replace(after, resolved_at_ms=now_ms, reason=RULE_REMOVED)
    changes.append(AlertChange(change, after))
    return after
