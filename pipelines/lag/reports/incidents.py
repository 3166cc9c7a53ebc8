"""Incidents of groups from rows of `group_status`, in words: what a page, `grouplake lag --status` and an alert show."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from coordinator_core.health import Finding, Incident, Status, incidents, rule_word, text_of
from coordinator_core.health.finding_phrases import is_latest_start
from coordinator_core.health.finding_text import Text
from coordinator_core.health.timed_text import timed_text, with_marks
from pipelines.lag.tables.status_rows import finding_of
from pipelines.runtime.timestamps import at_ms as timestamp
from pipelines.runtime.timestamps import to_ms

_FINE = (Status.OK, Status.NOTFOUND)


class Reported(NamedTuple):
    """Findings of one rule, and the incident that they belong to: as its cause, or as one of its symptoms."""

    found: tuple[Finding, ...]
    incident: Incident

    @property
    def is_symptom(self) -> bool:
        """True if another rule found the cause."""
        return self.found is not self.incident.found

    def text(self, at_ms: int) -> Text:
        """The words about the findings; a symptom names its cause."""
        text = text_of(self.found, at_ms)
        if not self.is_symptom:
            return text
        cause = self.incident.text(at_ms)
        detail = timed_text(f"{with_marks(text.detail)} Cause: {with_marks(cause.detail)}")
        return Text(detail, text.consequence, cause.next_step or text.next_step)


def incidents_of(rows: Iterable[Mapping[str, Any]]) -> tuple[Incident, ...]:
    """The incidents of elements of `group_status.findings`, the most severe first."""
    findings = (finding_of(row) for row in rows)
    return incidents(finding for finding in findings if finding.status not in _FINE)


def reported(found: Sequence[Incident], rules: Collection[str] = ()) -> Reported | None:
    """The first findings of one of these rules; without rules the cause of the first incident. None if there are none."""
    for incident in found:
        for of_rule in (incident.found, *incident.symptoms):
            if not rules or rule_word(of_rule[0].rule) in rules:
                return Reported(of_rule, incident)
    return None


def incident_row(incident: Incident, at: datetime) -> dict[str, Any]:
    """An incident with its sentences, and its symptoms. With `since_is_latest` it began at `since` or earlier."""
    text = incident.text(to_ms(at))
    return {
        **_row(incident.found, text.detail),
        "status": str(incident.status),
        "since": since_of(incident.found),
        "since_is_latest": is_latest_start(incident.found),
        "consequence": text.consequence,
        "next_step": text.next_step,
        "symptoms": [_row(symptom, text_of(symptom, to_ms(at)).detail) for symptom in incident.symptoms],
    }


def _row(found: Sequence[Finding], sentence: str) -> dict[str, Any]:
    first = found[0]
    return {"rule": rule_word(first.rule), "status": str(first.status), "sentence": sentence, "partitions": len(found)}


def since_of(found: Sequence[Finding]) -> datetime | None:
    """The earliest start; None if it is unknown."""
    return min((timestamp(each.since_ms) for each in found if each.since_ms is not None), default=None)
