"""Alerts: state machine of alerts, grouping and repetition of notifications. Pure; times in ms."""

from coordinator_core.alerts.alert import Alert, AlertKey, Delivery, State, deliveries_to
from coordinator_core.alerts.condition import Above, Aggregate, Below, Condition, OneOf, holds_of_aggregate
from coordinator_core.alerts.labels import ALERT_NAME, Labels, fingerprint, group_key, is_label_name, labels_of
from coordinator_core.alerts.notifications import (
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
from coordinator_core.alerts.owners import Owner, owner_of
from coordinator_core.alerts.rule import Observation, Rule, RuleResult, Seen
from coordinator_core.alerts.template import Template
from coordinator_core.alerts.transitions import RULE_REMOVED, TRANSITIONS, Change, Route, Step, Transition, step

__all__ = [
    "ALERT_NAME",
    "GIVE_UP_MS",
    "RULE_REMOVED",
    "TRANSITIONS",
    "Above",
    "Aggregate",
    "Alert",
    "AlertKey",
    "Below",
    "Change",
    "Condition",
    "Delivery",
    "Grouping",
    "Labels",
    "Notification",
    "Observation",
    "OneOf",
    "Owner",
    "Route",
    "Rule",
    "RuleResult",
    "Seen",
    "State",
    "Step",
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
