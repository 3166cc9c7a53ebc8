"""Evaluation of all rules: read, advance the alerts, store, deliver, store the results.

The alerts are stored before notifications are sent, with the receivers that are about to be notified. So a kill at any step
loses no resolve; a kill between a delivery and the storing of its result repeats the notification.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipelines.alerts.alert_rows import DeliveryResult, change_row, delivery_row
from pipelines.alerts.alert_store import AlertStore
from pipelines.alerts.delivery import Deliverer
from pipelines.alerts.evaluation_log import EvaluationLog
from pipelines.alerts.observations import observe, single
from pipelines.alerts.receivers.receiver import Context
from pipelines.alerts.rules_file import AlertRule, AlertRules
from pipelines.alerts.states import (
    Alert,
    AlertChange,
    AlertKey,
    Labels,
    Notification,
    OwnerTeam,
    Rule,
    RuleResult,
    due_notifications,
    owner_of,
    settled,
    step,
    with_attempt,
    with_failure,
    with_success,
)
from pipelines.alerts.tables import RuleTables
from pipelines.query.engine import Snapshot, batch_at
from pipelines.runtime.errors import AnotherWriter, GrouplakeError, TablesError
from pipelines.runtime.failpoints import failpoint
from pipelines.tables.store import TableStore

#: Failed attempts of a notification that are kept in the history one by one.
_STORED_FAILURES = 8


@dataclass(frozen=True)
class Evaluation:
    """The result of one evaluation: texts of failed rules by name, and the deliveries."""

    failed_rules: Mapping[str, str]
    deliveries: tuple[DeliveryResult, ...]

    @property
    def is_complete(self) -> bool:
        """Whether all rules were evaluated and all notifications accepted."""
        return not self.failed_rules and all(result.error is None for result in self.deliveries)


class AlertEvaluator:
    """Evaluates the rules on the tables under `root`, and stores alerts in `store`. For one thread."""

    def __init__(self, root: str, rules: AlertRules, store: AlertStore, clock_ms: Callable[[], int], log: EvaluationLog) -> None:
        self._root = root
        self._tables = TableStore(root)
        self._rules = rules
        self._store = store
        self._clock_ms = clock_ms
        self._log = log
        self._deliverer = Deliverer(rules.receivers)
        self._alerts = store.load()
        #: Time of the last batch that was read, and its expected age, for the time in which the tables cannot be read.
        self._last_age: tuple[int, float | None] | None = None

    @property
    def alerts(self) -> Mapping[AlertKey, Alert]:
        """The current alerts."""
        return self._alerts

    def evaluate(self) -> Evaluation:
        """Evaluate all rules once.

        Raises:
            AnotherWriter: another evaluator has stored its alerts.
        """
        now_ms = self._clock_ms()
        results, failed = self._results(now_ms)
        self._log.rules_failed(failed)
        before = self._alerts
        stepped = step(before, results, self._route, now_ms)
        alerts, given_up = settled(stepped.alerts, self._rules.groupings, now_ms)
        due = self._deliverer.ready(due_notifications(alerts, self._rules.groupings, now_ms))
        for notification in due:
            alerts = with_attempt(alerts, notification)
        changes = [*stepped.changes, *(AlertChange("given_up", alert) for alert in given_up)]
        self._log.changed(changes)
        if changes or due or _state(alerts) != _state(before):
            self._commit(alerts, [self._change_row(change, now_ms) for change in changes], now_ms)
        self._alerts = alerts
        deliveries = self._deliver(due, now_ms) if due else []
        self._tidy(now_ms)
        return Evaluation(failed, tuple(deliveries))

    def _change_row(self, change: AlertChange, now_ms: int) -> dict[str, Any]:
        name = change.alert.key.rule
        # an alert whose rule was removed is resolved
        rule = next((each for each in self._rules.rules if each.rule.name == name), None)
        return change_row(change, None if rule is None else rule.kind.unit_name, now_ms)

    def _results(self, now_ms: int) -> tuple[list[RuleResult], dict[str, str]]:
        """Results of all rules, and the errors of those that could not be evaluated."""
        try:
            snapshot = Snapshot(self._tables, batch_at(self._tables, None))
        except GrouplakeError as error:
            self._tables = TableStore(self._root)
            return self._results_without_tables(now_ms), {"all rules": str(error)}
        tables = RuleTables(snapshot, now_ms, self._rules.stale_after_ms)
        self._last_age = tables.batch_at_ms, tables.expected_seconds
        results, failed = [], {}
        for rule in self._rules.rules:
            active = [key.labels for key in self._alerts if key.rule == rule.rule.name]
            try:
                results.append(RuleResult(rule.rule, observe(rule, tables, active)))
            except GrouplakeError as error:
                failed[rule.rule.name] = str(error)
                results.append(RuleResult(rule.rule, None))
        if failed:
            # other tables may have replaced those that are open
            self._tables = TableStore(self._root)
        return results, failed

    def _results_without_tables(self, now_ms: int) -> list[RuleResult]:
        """All is unknown but the age of the last batch that was read, which grows."""
        if self._last_age is None:
            return [RuleResult(rule.rule, None) for rule in self._rules.rules]
        batch_at_ms, expected = self._last_age
        age = (now_ms - batch_at_ms) / 1000
        return [
            RuleResult(rule.rule, single(rule, age, expected) if rule.on == "batch_age" else None) for rule in self._rules.rules
        ]

    def _route(self, rule: Rule, labels: Labels) -> tuple[Labels, tuple[str, ...]]:
        owner = owner_of(dict(labels).get("group"), self._rules.owners)
        of_rule = self._rules.rule(rule.name)
        return () if owner is None else owner.labels, receivers_of(of_rule, owner, self._rules)

    def _deliver(self, due: list[Notification], now_ms: int) -> list[DeliveryResult]:
        results = self._deliverer.deliver(due, Context(self._rules.external_url, now_ms))
        failpoint("alerts:sent")
        now_ms = self._clock_ms()
        alerts: Mapping[AlertKey, Alert] = self._alerts
        for result in results:
            if result.error is None:
                alerts = with_success(alerts, result.notification, now_ms)
            else:
                alerts = with_failure(alerts, result.notification, now_ms)
            self._log.delivered(result)
        alerts, _ = settled(alerts, self._rules.groupings, now_ms)
        stored = [result for result in results if result.error is None or result.notification.attempt <= _STORED_FAILURES]
        self._commit(alerts, [delivery_row(result, now_ms) for result in stored], now_ms)
        self._alerts = alerts
        return results

    def _commit(self, alerts: Mapping[AlertKey, Alert], history: list[dict[str, Any]], now_ms: int) -> None:
        """Store the alerts. An alert is delivered even if it cannot be stored; then a restart may repeat it."""
        try:
            self._store.commit(alerts, history, now_ms)
            self._log.stored()
        except AnotherWriter:
            raise
        except TablesError as error:
            self._log.not_stored(str(error))

    def _tidy(self, now_ms: int) -> None:
        try:
            self._store.tidy_when_due(self._rules.history_days, now_ms)
        except TablesError as error:
            self._log.not_stored(str(error))


def _state(alerts: Mapping[AlertKey, Alert]) -> dict[AlertKey, Alert]:
    """The alerts without what changes at every evaluation: values and texts alone are no reason to store them."""
    return {key: replace(alert, value=None, annotations=()) for key, alert in alerts.items()}


def receivers_of(rule: AlertRule, owner: OwnerTeam | None, rules: AlertRules) -> tuple[str, ...]:
    """Receivers of an alert: those of the rule, else of the owner of the group, else the default ones."""
    return rule.receivers or (() if owner is None else owner.receivers) or rules.default_receivers
