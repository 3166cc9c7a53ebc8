"""Alerts from their transitions: state, values, and the time since an alert was last inactive."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dashboard.formatting.alerts import (
    alert_reason,
    alert_state,
    alert_value,
    other_labels,
    subject_labels,
    subject_texts,
)
from pipelines.dashboard.pages.alerts.alert_states import alert_states
from pipelines.dashboard.pages.alerts.alerts import alerts_view
from pipelines.dashboard.state.moment import Moment

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def row(minute: int, change: str, value: float | None = None, fingerprint: str = "f", **more: Any) -> dict[str, Any]:
    subject = {"rule": "Behind", "group_id": "billing", "topic": None, "partition": None, "labels": [("team", "x")]}
    values = {"value": value, "value_text": None, "reason": None}
    return {"fingerprint": fingerprint, "at": START + timedelta(minutes=minute), "change": change, **subject, **values, **more}


def states(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    """Of transitions in the order of time."""
    return alert_states(rows[::-1], {})


def test_an_alert_has_the_transitions_since_it_was_inactive() -> None:
    first = row(0, "pending", 1), row(1, "firing", 2), row(5, "resolved", 0, reason="cleared")
    (alert,) = states(*first)
    assert [(each["change"], each["value"]) for each in alert["transitions"]] == [("pending", 1), ("firing", 2), ("resolved", 0)]
    assert (alert["state"], alert["since"], alert["reason"]) == ("resolved", first[2]["at"], "cleared")
    (alert,) = states(*first, row(9, "pending", 7))
    assert [(each["change"], each["value"]) for each in alert["transitions"]] == [("pending", 7)]
    assert (alert["state"], alert["value"], alert["labels"]) == ("pending", 7, {"team": "x"})


def test_texts_are_of_the_present_alerts() -> None:
    texts = {"f": {"annotations": [("summary", "far behind")], "deliveries": [{"receiver": "ops"}], "unknown_since": None}}
    (alert,) = alert_states([row(0, "firing")], texts)
    assert (alert["annotations"], alert["receivers"]) == ({"summary": "far behind"}, [{"receiver": "ops"}])
    (alert,) = alert_states([row(0, "firing")], {})
    assert (alert["annotations"], alert["receivers"]) == ({}, [])


@given(st.lists(st.sampled_from(["pending", "firing", "resolved", "inactive"]), min_size=1, max_size=12))
def test_the_newest_transition_decides(changes: list[str]) -> None:
    rows = [row(minute, change) for minute, change in enumerate(changes)]
    (alert,) = states(*rows)
    assert alert["state"] == changes[-1]
    shown = [each["change"] for each in alert["transitions"]]
    assert shown == changes[len(changes) - len(shown) :]
    assert all(change in ("pending", "firing") for change in shown[:-1])


def test_the_unit_is_that_of_any_transition() -> None:
    """A row of an earlier version has none, nor has that of an alert whose rule was removed."""
    (alert,) = states(row(0, "pending", 1), row(1, "firing", 61, unit="seconds"), row(2, "resolved", 61, unit=None))
    assert [alert_value(each) for each in alert["transitions"]] == ["1 s", "1 min 1 s", "1 min 1 s"]
    (alert,) = states(row(0, "pending", 1))
    assert (alert["unit"], alert_value(alert)) == (None, "1")


def test_alerts_of_one_subject_are_together() -> None:
    rows = [("a", "billing", None), ("b", None, None), ("c", "billing", "orders"), ("d", None, "orders"), ("e", None, "orders")]
    found = states(*(row(0, "firing", 1, name, group_id=group, topic=topic) for name, group, topic in rows))
    view = alerts_view({"alerts": sorted(found, key=lambda alert: alert["fingerprint"]), "deliveries": []}, cast(Moment, None))
    together = [[alert["fingerprint"] for alert in alerts] for alerts in view["current"]]
    assert together == [["a", "c"], ["b"], ["d", "e"]]


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [(3_725.0, "seconds", "1 h 2 min"), (1.0, "records", "1 record"), (38_905_543.0, "records", "38,905,543 records")],
)
def test_values_have_their_units(value: float, unit: str, words: str) -> None:
    assert alert_value({"value": value, "value_text": None, "unit": unit}) == words


@pytest.mark.parametrize(
    ("value", "text", "words"),
    [
        (None, None, "–"),
        (5.0, None, "5"),
        (38905543.0, None, "38,905,543"),
        (0.1234, None, "0.123"),
        (None, "STOP\n", "STOP\\u000a"),
    ],
)
def test_values_in_words(value: float | None, text: str | None, words: str) -> None:
    assert alert_value({"value": value, "value_text": text}) == words


def test_states_reasons_and_labels_in_words() -> None:
    assert alert_state("firing").tone == "bad"
    assert alert_state("muted").word == "muted", "of a later version"
    assert alert_reason("absent") == "the tables have no value of it any more: the group, or its offset, was removed"
    assert alert_reason("HTTP 500") == "HTTP 500"
    assert alert_reason(None) == ""
    assert other_labels({"alertname": "x", "group": "g", "severity": "s", "team": "t\u202e", "a": "b"}) == "a=b, team=t\\u202e"


def test_facts_of_a_subject_are_read_once() -> None:
    cause, advice = "No commits on orders-3; 40 records wait.", "The lag grows. Restart w1."
    alerts = [
        {"group_id": "billing", "labels": {"team": "shop"}, "annotations": {"summary": summary, "description": description}}
        for summary, description in (
            (f"group billing is STOP: {cause}", advice),
            (f"group billing is ERR: {cause}", ""),
            ("billing is at least 25m behind in orders", f"{cause} {advice}"),
        )
    ]
    others = {"group_id": None, "labels": {}, "annotations": {"description": f"Cause: {cause}"}}
    facts = ["No commits on orders-3; 40 records wait", "billing is at least 25m behind in orders", "The lag grows", "Restart w1"]
    assert subject_texts(alerts) == facts
    assert subject_texts([*alerts, others]) == [*facts[1:], f"Cause: {facts[0]}"]
    assert subject_labels([*alerts, others]) == "team=shop"
    assert subject_texts([others | {"annotations": {}}]) == []
