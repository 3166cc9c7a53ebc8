"""Alerts in words: values with the unit of their rule, states, reasons, labels."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.quantities import UNKNOWN, duration


class StateWords(NamedTuple):
    """Presentation of the state of an alert."""

    word: str
    shape: str
    tone: str


STATES: Mapping[str, StateWords] = {
    "firing": StateWords("firing", "▲", "bad"),
    "pending": StateWords("pending", "◆", "warn"),
    "resolved": StateWords("resolved", "●", "ok"),
    "inactive": StateWords("not fired", "○", "unknown"),
}
_REASONS = {
    "cleared": "the condition no longer holds",
    "absent": "the tables have no value of it any more: the group, or its offset, was removed",
    "unknown": "the value was unknown for too long",
    "rule_removed": "the rule was removed",
}
_NEXT_SENTENCE = re.compile(r"(?<=[.!?]) +(?=[A-Z])")
#: Annotations that the page shows.
_TEXTS = ("summary", "description")
#: Labels that the page shows as subject, or as the name of the rule.
_SUBJECT = ("alertname", "group", "topic", "partition", "severity", "cluster")


def alert_state(state: str) -> StateWords:
    """Words of a state; a state that a later version may add is printed as it is."""
    return STATES.get(state, StateWords(state, "○", "unknown"))


def alert_value(row: Mapping[str, Any]) -> str:
    """The value of an alert or a transition with its unit, if it is known: at most three decimals, a text as it is."""
    if row["value_text"] is not None:
        return visible(row["value_text"], 60)
    value, unit = row["value"], row.get("unit")
    if value is None:
        return UNKNOWN
    if unit == "seconds":
        return duration(value)
    number = f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{number} {unit.removesuffix('s') if value == 1 else unit}" if unit else number


def alert_reason(reason: str | None) -> str:
    """The reason of a resolve."""
    return "" if reason is None else _REASONS.get(reason, visible(reason, 200))


def other_labels(labels: Mapping[str, str]) -> str:
    """Labels beside those of the subject, such as `team=payments`."""
    shown = sorted((name, value) for name, value in labels.items() if name not in _SUBJECT)
    return ", ".join(f"{visible(name, 40)}={visible(value, 60)}" for name, value in shown)


def subject_texts(alerts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The annotations of the alerts of a subject as sentences, summaries first; each fact once.

    A sentence that another one contains is left out, and so is the name of the subject before a colon.
    """
    texts = [_without_subject(alert, name) for name in _TEXTS for alert in alerts]
    sentences = list(dict.fromkeys(each.rstrip(". ") for text in texts for each in _NEXT_SENTENCE.split(text) if each.strip()))
    return [visible(each, 300) for each in sentences if not any(each != other and each in other for other in sentences)]


def _without_subject(alert: Mapping[str, Any], name: str) -> str:
    """An annotation without what its row has already: `group billing is STOP: No commits …`."""
    return re.sub(rf"^group {re.escape(alert['group_id'] or '')} is [A-Z]+: ", "", alert["annotations"].get(name) or "")


def subject_labels(alerts: Sequence[Mapping[str, Any]]) -> str:
    """The labels of the alerts of a subject, each once."""
    return ", ".join(dict.fromkeys(text for text in (other_labels(alert["labels"]) for alert in alerts) if text))
