"""Alerts: state machine of alerts, grouping and repetition of notifications. Pure; times in ms."""

from pipelines.alerts.states.alert import Alert, AlertKey, Delivery, State, deliveries_to
from pipelines.alerts.states.condition import Above, Aggregate, Below, Condition, OneOf, holds_of_aggregate
from pipelines.alerts.states.labels import ALERT_NAME, Labels, fingerprint, group_key, is_label_name, labels_of
from pipelines.alerts.states.notifications import (
    GIVE_UP_MS,
    Grouping,
    Notification,
    due_notifications,
    pause_ms,
    settled,
    with_attempt,
    with_failure,
    with_success,
)
from pipelines.alerts.states.owners import OwnerTeam, owner_of
from pipelines.alerts.states.rule import Observation, Rule, RuleResult, Seen
from pipelines.alerts.states.template import Template
from pipelines.alerts.states.transitions import RULE_REMOVED, TRANSITIONS, AdvancedAlerts, AlertChange, Route, Transition, step

__all__ = [
    "ALERT_NAME",
    "GIVE_UP_MS",
    "RULE_REMOVED",
    "TRANSITIONS",
    "Above",
    "AdvancedAlerts",
    "Aggregate",
    "Alert",
    "AlertChange",
    "AlertKey",
    "Below",
    "Condition",
    "Delivery",
    "Grouping",
    "Labels",
    "Notification",
    "Observation",
    "OneOf",
    "OwnerTeam",
    "Route",
    "Rule",
    "RuleResult",
    "Seen",
    "State",
    "Template",
    "Transition",
    "deliveries_to",
    "due_notifications",
    "fingerprint",
    "group_key",
    "holds_of_aggregate",
    "is_label_name",
    "labels_of",
    "owner_of",
    "pause_ms",
    "settled",
    "step",
    "with_attempt",
    "with_failure",
    "with_success",
]
