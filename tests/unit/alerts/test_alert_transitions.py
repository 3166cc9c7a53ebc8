"""The state machine of alerts row by row, and the times of notifications."""

from dataclasses import replace

import pytest

from pipelines.alerts.states import (
    TRANSITIONS,
    Alert,
    AlertKey,
    Grouping,
    Observation,
    Rule,
    RuleResult,
    Seen,
    State,
    Template,
    deliveries_to,
    due_notifications,
    fingerprint,
    group_key,
    labels_of,
    pause_ms,
    settled,
    step,
    with_success,
)

MINUTE = 60_000
RULE = Rule(
    "Behind",
    for_ms=2 * MINUTE,
    keep_firing_for_ms=MINUTE,
    unknown_for_ms=10 * MINUTE,
    labels=labels_of({"severity": "warning"}),
    annotations=(("summary", Template("{group} is {value} behind")),),
)
LABELS = labels_of({"group": "billing"})
T, F, U, GONE = True, False, None, "gone"


def life(*seen: bool | str | None, rule: Rule = RULE, every_ms: int = MINUTE) -> list[str]:
    """Changes at each evaluation, one a minute."""
    alerts: dict[AlertKey, Alert] = {}
    found = []
    for number, holds in enumerate(seen):
        observed = {} if isinstance(holds, str) else {LABELS: Observation(LABELS, holds, 7.0, {"value": "7"})}
        stepped = step(alerts, [RuleResult(rule, observed)], lambda *_: ((), ("ops",)), number * every_ms)
        alerts, _ = settled(stepped.alerts, {}, number * every_ms)
        found.append(" ".join(change.change for change in stepped.changes))
    return found


@pytest.mark.parametrize(
    ("seen", "changes"),
    [
        # `for`: true at evaluations that are two minutes apart
        ((T, T, T, T), ["pending", "", "firing", ""]),
        ((T, T, F, T, T, T), ["pending", "", "inactive", "pending", "", "firing"]),
        ((T, T, GONE), ["pending", "", "inactive"]),
        # no value at all, and a pause without a value: neither fires, and the pause does not count
        ((U, U, U, U), ["", "", "", ""]),
        ((T, U, U, U, T, T, T), ["pending", "", "", "", "", "firing", ""]),
        ((T, *[U] * 11), ["pending", *[""] * 10, "inactive"]),
        # `keep_firing_for`
        ((T, T, T, F, F, F), ["pending", "", "firing", "", "resolved", ""]),
        ((T, T, T, F, T, F, F), ["pending", "", "firing", "", "", "", "resolved"]),
        ((T, T, T, GONE, GONE), ["pending", "", "firing", "", "resolved"]),
        # an unknown value resolves nothing before `unknown_for`
        ((T, T, T, *[U] * 11), ["pending", "", "firing", *[""] * 10, "resolved"]),
        ((T, T, T, *[U] * 8, T, *[U] * 8), ["pending", "", "firing", *[""] * 17]),
        ((T, T, T, F, U, F), ["pending", "", "firing", "", "", "resolved"]),
    ],
)
def test_transitions(seen: tuple[bool | str | None, ...], changes: list[str]) -> None:
    assert life(*seen) == changes


def test_every_row_of_the_table_has_its_own_state_and_observation() -> None:
    pairs = [(row.state, seen) for row in TRANSITIONS for seen in row.seen]
    assert len(pairs) == len(set(pairs))
    assert not [pair for pair in pairs if pair == (State.FIRING, Seen.TRUE)]


def test_without_for_an_alert_fires_at_once() -> None:
    assert life(T, F, rule=Rule("Now")) == ["pending firing", "resolved"]


def test_a_rule_that_cannot_be_evaluated_changes_nothing() -> None:
    alerts = step({}, [RuleResult(Rule("Now"), {LABELS: Observation(LABELS, True)})], lambda *_: ((), ("ops",)), 0).alerts
    stepped = step(alerts, [RuleResult(Rule("Now"), None)], lambda *_: ((), ("ops",)), MINUTE)
    assert stepped.changes == ()
    (alert,) = stepped.alerts.values()
    assert (alert.state, alert.unknown_since_ms) == (State.FIRING, MINUTE)


def test_labels_of_a_firing_alert_do_not_change() -> None:
    """A changed owner or severity would otherwise leave an alert at Alertmanager that is never resolved."""
    rule = replace(RULE, for_ms=0)
    observed = {LABELS: Observation(LABELS, True, 7.0, {"value": "7"})}
    alerts = step({}, [RuleResult(rule, observed)], lambda *_: ((("team", "a"),), ("ops",)), 0).alerts
    changed = replace(rule, labels=labels_of({"severity": "critical"}))
    alerts = step(alerts, [RuleResult(changed, observed)], lambda *_: ((("team", "b"),), ("other",)), MINUTE).alerts
    (alert,) = alerts.values()
    assert alert.labels == labels_of({"alertname": "Behind", "group": "billing", "severity": "warning", "team": "a"})
    assert [delivery.receiver for delivery in alert.deliveries] == ["ops"]
    assert alert.annotations == (("summary", "billing is 7 behind"),)


def test_values_are_inserted_as_plain_text() -> None:
    assert Template("{group} {value} {none} {}").filled({"group": "{value}", "value": "7"}) == "{value} 7  {}"


def firing(name: str, at_ms: int, topic: str = "orders") -> Alert:
    labels = labels_of({"alertname": "Behind", "group": name, "topic": topic})
    return Alert(AlertKey("Behind", labels), State.FIRING, labels, (), deliveries_to(["ops"]), at_ms, 1.0, at_ms)


def test_groups_wait_for_further_alerts_and_repeat() -> None:
    groupings = {"ops": Grouping(("topic",), 30_000, 5 * MINUTE, 60 * MINUTE)}
    first, second = firing("a", 0), firing("b", 20_000)
    alerts = {alert.key: alert for alert in (first, second)}
    assert due_notifications(alerts, groupings, 29_999) == []
    (page,) = due_notifications(alerts, groupings, 30_000)
    assert [alert.key.labels for alert in page.firing] == [first.labels, second.labels]
    assert page.group_labels == (("topic", "orders"),)
    alerts = with_success(alerts, page, 30_000)
    assert due_notifications(alerts, groupings, 30_000 + 60 * MINUTE - 1) == []
    assert len(due_notifications(alerts, groupings, 30_000 + 60 * MINUTE)) == 1
    # a new alert of the same group waits for the interval, one of another group does not
    alerts |= {alert.key: alert for alert in (firing("c", MINUTE), firing("d", MINUTE, "returns"))}
    assert [each.group_labels for each in due_notifications(alerts, groupings, 2 * MINUTE)] == [(("topic", "returns"),)]
    (_, more) = sorted(due_notifications(alerts, groupings, 30_000 + 5 * MINUTE), key=lambda each: -len(each.firing))[::-1]
    assert len(more.firing) == 3


def test_a_receiver_without_resolves_gets_none() -> None:
    groupings = {"ops": Grouping(("topic",), 0, 0, MINUTE, sends_resolved=False)}
    alerts = {each.key: each for each in [firing("a", 0)]}
    (page,) = due_notifications(alerts, groupings, 0)
    alerts = with_success(alerts, page, 0)
    resolved = {key: replace(alert, state=State.INACTIVE, resolved_at_ms=1) for key, alert in alerts.items()}
    assert due_notifications(resolved, groupings, MINUTE) == []
    assert settled(resolved, groupings, MINUTE) == ({}, [])


def test_a_resolve_that_is_never_accepted_is_given_up() -> None:
    groupings = {"ops": Grouping()}
    alert = replace(firing("a", 0), state=State.INACTIVE, resolved_at_ms=0)
    alert = alert.with_delivery(replace(alert.deliveries[0], is_open=True))
    day = 86_400_000
    assert settled({alert.key: alert}, groupings, 5 * day - 1) == ({alert.key: alert}, [])
    assert settled({alert.key: alert}, groupings, 5 * day) == ({}, [alert])


def test_pauses_double_up_to_five_minutes() -> None:
    assert [pause_ms(failures) for failures in (1, 2, 3, 6, 7, 8, 900)] == [
        5_000, 10_000, 20_000, 160_000, 300_000, 300_000, 300_000,
    ]  # fmt: skip


def test_identifiers_of_alertmanager() -> None:
    """tests/pipeline/test_alert_delivery.py compares both with those of a running Alertmanager."""
    assert fingerprint(()) == "cbf29ce484222325"
    assert group_key(labels_of({"alertname": 'a"b\\\n'})) == '{}:{alertname="a\\"b\\\\\\n"}'
