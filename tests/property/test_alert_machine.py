"""Alerts against a model of their receiver: random values, outages of the receiver, kills and restarts, in any order."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pipelines.alerts.states import (
    Alert,
    AlertKey,
    Grouping,
    Labels,
    Notification,
    Observation,
    Rule,
    RuleResult,
    due_notifications,
    labels_of,
    settled,
    step,
    with_attempt,
    with_failure,
    with_success,
)

RULE = Rule("Behind", for_ms=15_000, keep_firing_for_ms=20_000, unknown_for_ms=600_000)
GROUPING = Grouping(group_by=("topic",), group_wait_ms=10_000, group_interval_ms=60_000, repeat_interval_ms=3_600_000)
GROUPINGS = {"ops": GROUPING}
INSTANCES = tuple(labels_of({"group": group, "topic": topic}) for group in "ab" for topic in "xy")
#: "gone": the row is absent.
VALUES = st.sampled_from([True, True, False, None, "gone"])


def observed(values: dict[Labels, bool | str | None]) -> RuleResult:
    found = {labels: Observation(labels, holds, 1.0) for labels, holds in values.items() if not isinstance(holds, str)}
    return RuleResult(RULE, found)


class AlertMachine(RuleBasedStateMachine):
    """One evaluator, whose state is committed as `evaluator.py` does it, and one receiver."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000
        self.alerts: dict[AlertKey, Alert] = {}
        self.stored: dict[AlertKey, Alert] = {}
        self.values: dict[Labels, bool | str | None] = dict.fromkeys(INSTANCES, True)
        #: Known time in which the condition held without a clear value between, per instance.
        self.held: dict[Labels, int] = {}
        #: Time of the last evaluation, and the instances that were true then.
        self.last_evaluation: tuple[int, frozenset[Labels]] = (0, frozenset())
        self.is_up = True
        #: Fingerprints that fire in the eyes of the receiver, and the last notification per group.
        self.shown: set[str] = set()
        self.last: dict[Labels, tuple[int, set[str]]] = {}
        #: Groups whose last notification was received, but not stored as sent: it is sent again.
        self.unconfirmed: set[Labels] = set()

    @rule(which=st.sampled_from(INSTANCES), value=VALUES)
    def change_value(self, which: Labels, value: bool | str | None) -> None:
        self.values[which] = value

    @rule(is_up=st.booleans())
    def change_receiver(self, is_up: bool) -> None:
        self.is_up = is_up

    @rule(seconds=st.sampled_from([0, 1, 15, 61, 700, 4_000]))
    def wait(self, seconds: int) -> None:
        self.now += seconds * 1000

    @rule()
    def restart(self) -> None:
        """A restart between evaluations changes nothing: all that an evaluation needs is stored."""
        assert self.stored == self.alerts
        self.alerts = dict(self.stored)

    @rule(readable=st.booleans())
    def evaluate(self, readable: bool) -> None:
        self._evaluate(observed(self.values) if readable else RuleResult(RULE, None), kill=False)

    @rule()
    def kill_after_sending(self) -> None:
        """The receiver got the notifications; the process dies before it stores that."""
        self._evaluate(observed(self.values), kill=True)

    def _evaluate(self, result: RuleResult, kill: bool) -> None:
        self._count_held(result)
        stepped = step(self.alerts, [result], lambda *_: ((("team", "payments"),), ("ops",)), self.now)
        for change in stepped.changes:
            if change.change == "firing":
                assert self.held[change.alert.key.labels] >= RULE.for_ms
        alerts, given_up = settled(stepped.alerts, GROUPINGS, self.now)
        assert not given_up or self.now > 5 * 86_400_000
        due = due_notifications(alerts, GROUPINGS, self.now)
        for notification in due:
            alerts = with_attempt(alerts, notification)
        self.stored = dict(alerts)
        for notification in due:
            if self.is_up:
                self._receive(notification)
                (self.unconfirmed.add if kill else self.unconfirmed.discard)(notification.group_labels)
                alerts = with_success(alerts, notification, self.now)
            else:
                alerts = with_failure(alerts, notification, self.now)
        alerts, _ = settled(alerts, GROUPINGS, self.now)
        if not kill:
            self.stored = dict(alerts)
        self.alerts = dict(self.stored)

    def _count_held(self, result: RuleResult) -> None:
        at, true = self.last_evaluation
        for labels in true:
            self.held[labels] += self.now - at
        for labels in INSTANCES:
            observation = None if result.observations is None else result.observations.get(labels)
            if result.observations is not None and (observation is None or observation.holds is False):
                self.held.pop(labels, None)
            elif observation is not None and observation.holds:
                self.held.setdefault(labels, 0)
        observations = (result.observations or {}).values()
        self.last_evaluation = self.now, frozenset(each.labels for each in observations if each.holds)

    def _receive(self, notification: Notification) -> None:
        assert notification.firing or notification.resolved
        firing = {alert.fingerprint for alert in notification.firing}
        resolved = {alert.fingerprint for alert in notification.resolved}
        before = self.last.get(notification.group_labels)
        if before is not None and notification.group_labels not in self.unconfirmed and not resolved and firing <= before[1]:
            # nothing new: a repetition
            assert self.now - before[0] >= GROUPING.repeat_interval_ms
        self.last[notification.group_labels] = (self.now, firing)
        self.shown = (self.shown | firing) - resolved

    @invariant()
    def what_a_receiver_shows_is_known(self) -> None:
        """So a resolve follows in any case, whenever the process was killed."""
        is_open = {alert.fingerprint for alert in self.stored.values() if any(each.is_open for each in alert.deliveries)}
        assert self.shown <= is_open

    @invariant()
    def only_true_values_fire(self) -> None:
        for alert in self.alerts.values():
            assert alert.labels[0] == ("alertname", "Behind")
            assert dict(alert.labels)["team"] == "payments"
            if alert.is_firing:
                assert alert.fired_at_ms is not None

    def teardown(self) -> None:
        """In the end all values are clear and the receiver answers: it shows nothing."""
        self.values = dict.fromkeys(INSTANCES, "gone")
        self.is_up = True
        for _ in range(4):
            self.now += 400_000
            self._evaluate(observed(self.values), kill=False)
        assert self.shown == set()
        assert self.alerts == {}


TestAlertMachine = AlertMachine.TestCase
